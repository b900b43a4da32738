"""SQL is written once: how a statement becomes each database's own."""

from threadkeep.storage.database.connector import Statement


def test_names_become_marks_in_the_order_in_which_each_database_wants_them():
    statement = Statement("SELECT :b, :a, :b")
    assert (statement.sqlite, statement.sqlite_names) == ("SELECT ?, ?, ?", ("b", "a", "b"))
    assert (statement.postgres, statement.postgres_names) == ("SELECT $1, $2, $1", ("b", "a"))


def test_names_may_hold_digits_and_underscores():
    statement = Statement("SELECT :sha256, :first_seq")
    assert statement.sqlite_names == statement.postgres_names == ("sha256", "first_seq")


def test_casts_and_times_are_not_names():
    statement = Statement("SELECT :id::uuid, '10:30', a.b::text")
    assert statement.sqlite_names == statement.postgres_names == ("id",)
    assert statement.postgres == "SELECT $1::uuid, '10:30', a.b::text"


def test_postgres_may_have_a_text_of_its_own():
    statement = Statement("SELECT :a, :b", postgres="SELECT :b FOR UPDATE")
    assert (statement.sqlite, statement.sqlite_names) == ("SELECT ?, ?", ("a", "b"))
    assert (statement.postgres, statement.postgres_names) == ("SELECT $1 FOR UPDATE", ("b",))
