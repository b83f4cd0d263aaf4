# The compiled engine is the pure one to whoever calls it.
from epicast.sim.engine import DOWN as DOWN
from epicast.sim.engine import DRAWS as DRAWS
from epicast.sim.engine import FLUSH_ROWS as FLUSH_ROWS
from epicast.sim.engine import NEVER_US as NEVER_US
from epicast.sim.engine import PAUSED as PAUSED
from epicast.sim.engine import UP as UP
from epicast.sim.engine import Engine as Engine
from epicast.sim.engine import SimEnv as SimEnv
from epicast.sim.engine import Timer as Timer
