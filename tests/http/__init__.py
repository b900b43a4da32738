# ruff: noqa: A005 - the folder is `tests.http`, which hides nothing
