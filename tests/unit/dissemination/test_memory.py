from epicast.dissemination.memory import KEYS_MAX, MEMORY_US, Memory


def test_a_key_is_remembered_for_one_to_two_times_its_time() -> None:
    memory = Memory(0)
    memory.add(b"early")
    memory.turn(MEMORY_US - 1)
    memory.add(b"late")
    memory.turn(MEMORY_US)
    assert b"early" in memory
    assert b"late" in memory
    memory.turn(2 * MEMORY_US - 1)
    assert b"early" in memory
    memory.turn(2 * MEMORY_US)
    assert b"early" not in memory
    assert b"late" not in memory


def test_it_is_bounded() -> None:
    memory = Memory(0)
    keys = [number.to_bytes(4, "big") for number in range(2 * KEYS_MAX + 10)]
    for key in keys:
        memory.add(key)
        memory.turn(0)
    assert 0 < len(keys) - len(memory.unknown(keys)) <= 2 * (KEYS_MAX + 1)
    assert keys[-10] in memory


def test_it_tells_apart_what_is_unknown() -> None:
    memory = Memory(0)
    memory.add(b"old")
    memory.turn(MEMORY_US)
    memory.add(b"new")
    assert memory.unknown([b"other", b"old", b"another", b"new"]) == [b"another", b"other"]
