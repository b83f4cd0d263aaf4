# Compiled messages are the pure ones to whoever gets them.
from epicast.live.plain_messages import Message as Message
from epicast.live.plain_messages import plain_messages as plain_messages
