-- When users were deleted: tokens issued before stay refused. `name` tells nobody who it was.
CREATE TABLE tk_deleted_users (
    name text NOT NULL PRIMARY KEY,
    deleted_at bigint NOT NULL
);
