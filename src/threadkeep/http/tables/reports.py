"""Tool results, reports, files and shares."""

from threadkeep.domain.errors import (
    ArtifactNotFound,
    Conflict,
    FileNotFound,
    Forbidden,
    LimitNotAllowed,
    MessageNotFound,
    RangeNotSatisfiable,
    RateLimited,
    ShareNotFound,
    TurnInProgress,
    UnsupportedFile,
)
from threadkeep.domain.key import Scope
from threadkeep.handling.routing import Route
from threadkeep.http.api import files, shares
from threadkeep.http.reports import handlers as reports
from threadkeep.http.tables.common import CONVERSATION

_RANGE = {
    "Range": "One range of bytes, such as `bytes=0-1023`; others are ignored.",
    "If-Range": "An `ETag`: if the file has another, the whole file is sent.",
}
_FILE_HEADERS = {
    "Content-Disposition": "An attachment with the file's name; `inline` for a preview.",
    "ETag": "The hash of the content.",
    "Accept-Ranges": "`bytes`: you can ask for a range of the file.",
}

REPORTS = (
    Route("GET", "/api/tool-results", reports.list_tool_results, "Reports", is_large=True),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/tool-results",
        reports.list_conversation_tool_results,
        "Reports",
        errors=CONVERSATION,
        is_large=True,
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/report",
        reports.get_report,
        "Reports",
        errors=CONVERSATION,
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/export",
        reports.export_conversation,
        "Reports",
        errors=CONVERSATION,
    ),
    Route(
        "GET",
        "/api/artifacts/{artifact_id}",
        files.get_artifact,
        "Reports",
        errors=(ArtifactNotFound, RangeNotSatisfiable),
        also=(206,),
        headers=_RANGE,
        gives=_FILE_HEADERS | {"Content-Disposition": "An attachment with the file's name."},
    ),
    Route(
        "POST",
        "/api/files",
        files.add_files,
        "Messages",
        201,
        (UnsupportedFile, LimitNotAllowed, RateLimited),
        scope=Scope.CHAT,
        creates=True,
    ),
    Route(
        "GET",
        "/api/files/{file_id}",
        files.get_file,
        "Messages",
        errors=(FileNotFound, RangeNotSatisfiable),
        also=(206,),
        headers=_RANGE,
        gives=_FILE_HEADERS,
    ),
)

SHARES = (
    Route(
        "POST",
        "/api/conversations/{conversation_id}/shares",
        shares.create_share,
        "Shares",
        201,
        (*CONVERSATION, MessageNotFound, TurnInProgress, Conflict, Forbidden, LimitNotAllowed),
        scope=Scope.CHAT,
        creates=True,
        shows_secret=True,
    ),
    Route(
        "GET",
        "/api/conversations/{conversation_id}/shares",
        shares.list_shares,
        "Shares",
        errors=CONVERSATION,
    ),
    Route(
        "DELETE",
        "/api/shares/{share}",
        shares.revoke_share,
        "Shares",
        204,
        (ShareNotFound,),
        scope=Scope.CHAT,
    ),
    Route(
        "GET",
        "/api/shares/{share}",
        shares.get_shared,
        "Shares",
        errors=(ShareNotFound,),
        opens_share=True,
        is_large=True,
    ),
    Route(
        "GET",
        "/api/shares/{share}/replays/{number}",
        shares.get_shared_replay,
        "Shares",
        errors=(ShareNotFound, MessageNotFound),
        opens_share=True,
        is_large=True,
    ),
    Route(
        "GET",
        "/api/shares/{share}/files/{file_id}",
        shares.get_shared_file,
        "Shares",
        errors=(ShareNotFound, FileNotFound, RangeNotSatisfiable),
        also=(206,),
        headers=_RANGE,
        gives=_FILE_HEADERS,
        opens_share=True,
    ),
)
