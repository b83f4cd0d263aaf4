import pyarrow as pa

from epicast.core.records import Kind
from epicast.trace.batch import DTYPES
from epicast.trace.schema import EVENTS, KIND_TEXTS, NODES, SNAPSHOTS, TABLES, VERSION, describe


def test_the_events_are_the_columns_of_a_batch_and_their_position() -> None:
    assert EVENTS.names == ["row", *DTYPES]


def test_the_text_of_a_kind_is_found_by_its_value() -> None:
    assert [KIND_TEXTS[kind] for kind in Kind] == [kind.name.lower() for kind in Kind]


def test_numbers_are_signed_since_spark_knows_no_others() -> None:
    for schema in TABLES.values():
        assert not [field.name for field in schema if pa.types.is_unsigned_integer(field.type)]


def test_only_the_end_of_a_process_may_be_unknown() -> None:
    assert [f.name for schema in (EVENTS, SNAPSHOTS, NODES) for f in schema if f.nullable] == ["ended_us"]


def test_each_table_says_which_it_is() -> None:
    for name, schema in TABLES.items():
        assert schema.metadata == {b"epicast.table": name.encode(), b"epicast.version": str(VERSION).encode()}


def test_the_description_has_a_line_for_each_column_and_every_kind() -> None:
    text = describe()
    for schema in TABLES.values():
        for field in schema:
            assert f"| {field.name} | " in text
            assert field.metadata[b"doc"].decode() in text
    assert all(f"`{kind}`" in text for kind in KIND_TEXTS.values())
