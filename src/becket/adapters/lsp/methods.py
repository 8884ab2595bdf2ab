"""Lists every LSP method and notification as a descriptor. Generated; do not edit.

Written by `python -m tests.adapters.lsp.write_methods` from lsprotocol's table; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from becket.adapters.lsp.descriptors import build_method, build_notification, build_stream
from becket.adapters.lsp.progress import Progress, WorkDone
from becket.methods.descriptors import Method, Notification
from becket.methods.streams import Stream

__all__ = [
    "CALL_HIERARCHY_INCOMING_CALLS",
    "CALL_HIERARCHY_OUTGOING_CALLS",
    "CANCEL_REQUEST",
    "CLIENT_REGISTER_CAPABILITY",
    "CLIENT_UNREGISTER_CAPABILITY",
    "CODE_ACTION_RESOLVE",
    "CODE_LENS_RESOLVE",
    "COMPLETION_ITEM_RESOLVE",
    "DOCUMENT_LINK_RESOLVE",
    "EXIT",
    "INITIALIZE",
    "INITIALIZED",
    "INLAY_HINT_RESOLVE",
    "LOG_TRACE",
    "NOTEBOOK_DOCUMENT_DID_CHANGE",
    "NOTEBOOK_DOCUMENT_DID_CLOSE",
    "NOTEBOOK_DOCUMENT_DID_OPEN",
    "NOTEBOOK_DOCUMENT_DID_SAVE",
    "PROGRESS",
    "SET_TRACE",
    "SHUTDOWN",
    "TELEMETRY_EVENT",
    "TEXT_DOCUMENT_CODE_ACTION",
    "TEXT_DOCUMENT_CODE_LENS",
    "TEXT_DOCUMENT_COLOR_PRESENTATION",
    "TEXT_DOCUMENT_COMPLETION",
    "TEXT_DOCUMENT_DECLARATION",
    "TEXT_DOCUMENT_DEFINITION",
    "TEXT_DOCUMENT_DIAGNOSTIC",
    "TEXT_DOCUMENT_DID_CHANGE",
    "TEXT_DOCUMENT_DID_CLOSE",
    "TEXT_DOCUMENT_DID_OPEN",
    "TEXT_DOCUMENT_DID_SAVE",
    "TEXT_DOCUMENT_DOCUMENT_COLOR",
    "TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT",
    "TEXT_DOCUMENT_DOCUMENT_LINK",
    "TEXT_DOCUMENT_DOCUMENT_SYMBOL",
    "TEXT_DOCUMENT_FOLDING_RANGE",
    "TEXT_DOCUMENT_FORMATTING",
    "TEXT_DOCUMENT_HOVER",
    "TEXT_DOCUMENT_IMPLEMENTATION",
    "TEXT_DOCUMENT_INLAY_HINT",
    "TEXT_DOCUMENT_INLINE_COMPLETION",
    "TEXT_DOCUMENT_INLINE_VALUE",
    "TEXT_DOCUMENT_LINKED_EDITING_RANGE",
    "TEXT_DOCUMENT_MONIKER",
    "TEXT_DOCUMENT_ON_TYPE_FORMATTING",
    "TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY",
    "TEXT_DOCUMENT_PREPARE_RENAME",
    "TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY",
    "TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS",
    "TEXT_DOCUMENT_RANGES_FORMATTING",
    "TEXT_DOCUMENT_RANGE_FORMATTING",
    "TEXT_DOCUMENT_REFERENCES",
    "TEXT_DOCUMENT_RENAME",
    "TEXT_DOCUMENT_SELECTION_RANGE",
    "TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL",
    "TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA",
    "TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE",
    "TEXT_DOCUMENT_SIGNATURE_HELP",
    "TEXT_DOCUMENT_TYPE_DEFINITION",
    "TEXT_DOCUMENT_WILL_SAVE",
    "TEXT_DOCUMENT_WILL_SAVE_WAIT_UNTIL",
    "TYPE_HIERARCHY_SUBTYPES",
    "TYPE_HIERARCHY_SUPERTYPES",
    "WINDOW_LOG_MESSAGE",
    "WINDOW_SHOW_DOCUMENT",
    "WINDOW_SHOW_MESSAGE",
    "WINDOW_SHOW_MESSAGE_REQUEST",
    "WINDOW_WORK_DONE_PROGRESS_CANCEL",
    "WINDOW_WORK_DONE_PROGRESS_CREATE",
    "WORKSPACE_APPLY_EDIT",
    "WORKSPACE_CODE_LENS_REFRESH",
    "WORKSPACE_CONFIGURATION",
    "WORKSPACE_DIAGNOSTIC",
    "WORKSPACE_DIAGNOSTIC_REFRESH",
    "WORKSPACE_DID_CHANGE_CONFIGURATION",
    "WORKSPACE_DID_CHANGE_WATCHED_FILES",
    "WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS",
    "WORKSPACE_DID_CREATE_FILES",
    "WORKSPACE_DID_DELETE_FILES",
    "WORKSPACE_DID_RENAME_FILES",
    "WORKSPACE_EXECUTE_COMMAND",
    "WORKSPACE_FOLDING_RANGE_REFRESH",
    "WORKSPACE_INLAY_HINT_REFRESH",
    "WORKSPACE_INLINE_VALUE_REFRESH",
    "WORKSPACE_SEMANTIC_TOKENS_REFRESH",
    "WORKSPACE_SYMBOL",
    "WORKSPACE_SYMBOL_RESOLVE",
    "WORKSPACE_TEXT_DOCUMENT_CONTENT",
    "WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH",
    "WORKSPACE_WILL_CREATE_FILES",
    "WORKSPACE_WILL_DELETE_FILES",
    "WORKSPACE_WILL_RENAME_FILES",
    "WORKSPACE_WORKSPACE_FOLDERS",
]

CALL_HIERARCHY_INCOMING_CALLS: Stream[
    types.CallHierarchyIncomingCallsParams,
    Sequence[types.CallHierarchyIncomingCall] | None,
    Progress[Sequence[types.CallHierarchyIncomingCall]],
] = build_stream(types.CALL_HIERARCHY_INCOMING_CALLS)
CALL_HIERARCHY_OUTGOING_CALLS: Stream[
    types.CallHierarchyOutgoingCallsParams,
    Sequence[types.CallHierarchyOutgoingCall] | None,
    Progress[Sequence[types.CallHierarchyOutgoingCall]],
] = build_stream(types.CALL_HIERARCHY_OUTGOING_CALLS)
CANCEL_REQUEST: Notification[types.CancelParams] = build_notification(types.CANCEL_REQUEST)
CLIENT_REGISTER_CAPABILITY: Method[types.RegistrationParams, None] = build_method(types.CLIENT_REGISTER_CAPABILITY)
CLIENT_UNREGISTER_CAPABILITY: Method[
    types.UnregistrationParams,
    None,
] = build_method(types.CLIENT_UNREGISTER_CAPABILITY)
CODE_ACTION_RESOLVE: Method[types.CodeAction, types.CodeAction] = build_method(types.CODE_ACTION_RESOLVE)
CODE_LENS_RESOLVE: Method[types.CodeLens, types.CodeLens] = build_method(types.CODE_LENS_RESOLVE)
COMPLETION_ITEM_RESOLVE: Method[
    types.CompletionItem,
    types.CompletionItem,
] = build_method(types.COMPLETION_ITEM_RESOLVE)
DOCUMENT_LINK_RESOLVE: Method[types.DocumentLink, types.DocumentLink] = build_method(types.DOCUMENT_LINK_RESOLVE)
EXIT: Notification[None] = build_notification(types.EXIT)
INITIALIZE: Stream[types.InitializeParams, types.InitializeResult, WorkDone] = build_stream(types.INITIALIZE)
INITIALIZED: Notification[types.InitializedParams] = build_notification(types.INITIALIZED)
INLAY_HINT_RESOLVE: Method[types.InlayHint, types.InlayHint] = build_method(types.INLAY_HINT_RESOLVE)
LOG_TRACE: Notification[types.LogTraceParams] = build_notification(types.LOG_TRACE)
NOTEBOOK_DOCUMENT_DID_CHANGE: Notification[types.DidChangeNotebookDocumentParams] = build_notification(
    types.NOTEBOOK_DOCUMENT_DID_CHANGE
)
NOTEBOOK_DOCUMENT_DID_CLOSE: Notification[types.DidCloseNotebookDocumentParams] = build_notification(
    types.NOTEBOOK_DOCUMENT_DID_CLOSE
)
NOTEBOOK_DOCUMENT_DID_OPEN: Notification[types.DidOpenNotebookDocumentParams] = build_notification(
    types.NOTEBOOK_DOCUMENT_DID_OPEN
)
NOTEBOOK_DOCUMENT_DID_SAVE: Notification[types.DidSaveNotebookDocumentParams] = build_notification(
    types.NOTEBOOK_DOCUMENT_DID_SAVE
)
PROGRESS: Notification[types.ProgressParams] = build_notification(types.PROGRESS)
SET_TRACE: Notification[types.SetTraceParams] = build_notification(types.SET_TRACE)
SHUTDOWN: Method[None, None] = build_method(types.SHUTDOWN)
TELEMETRY_EVENT: Notification[Any] = build_notification(types.TELEMETRY_EVENT)
TEXT_DOCUMENT_CODE_ACTION: Stream[
    types.CodeActionParams,
    Sequence[types.Command | types.CodeAction] | None,
    Progress[Sequence[types.Command | types.CodeAction]],
] = build_stream(types.TEXT_DOCUMENT_CODE_ACTION)
TEXT_DOCUMENT_CODE_LENS: Stream[
    types.CodeLensParams,
    Sequence[types.CodeLens] | None,
    Progress[Sequence[types.CodeLens]],
] = build_stream(types.TEXT_DOCUMENT_CODE_LENS)
TEXT_DOCUMENT_COLOR_PRESENTATION: Stream[
    types.ColorPresentationParams,
    Sequence[types.ColorPresentation],
    Progress[Sequence[types.ColorPresentation]],
] = build_stream(types.TEXT_DOCUMENT_COLOR_PRESENTATION)
TEXT_DOCUMENT_COMPLETION: Stream[
    types.CompletionParams,
    Sequence[types.CompletionItem] | types.CompletionList | None,
    Progress[Sequence[types.CompletionItem]],
] = build_stream(types.TEXT_DOCUMENT_COMPLETION)
TEXT_DOCUMENT_DECLARATION: Stream[
    types.DeclarationParams,
    types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None,
    Progress[Sequence[types.Location] | Sequence[types.LocationLink]],
] = build_stream(types.TEXT_DOCUMENT_DECLARATION)
TEXT_DOCUMENT_DEFINITION: Stream[
    types.DefinitionParams,
    types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None,
    Progress[Sequence[types.Location] | Sequence[types.LocationLink]],
] = build_stream(types.TEXT_DOCUMENT_DEFINITION)
TEXT_DOCUMENT_DIAGNOSTIC: Stream[
    types.DocumentDiagnosticParams,
    types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport,
    Progress[types.DocumentDiagnosticReportPartialResult],
] = build_stream(types.TEXT_DOCUMENT_DIAGNOSTIC)
TEXT_DOCUMENT_DID_CHANGE: Notification[types.DidChangeTextDocumentParams] = build_notification(
    types.TEXT_DOCUMENT_DID_CHANGE
)
TEXT_DOCUMENT_DID_CLOSE: Notification[types.DidCloseTextDocumentParams] = build_notification(
    types.TEXT_DOCUMENT_DID_CLOSE
)
TEXT_DOCUMENT_DID_OPEN: Notification[types.DidOpenTextDocumentParams] = build_notification(types.TEXT_DOCUMENT_DID_OPEN)
TEXT_DOCUMENT_DID_SAVE: Notification[types.DidSaveTextDocumentParams] = build_notification(types.TEXT_DOCUMENT_DID_SAVE)
TEXT_DOCUMENT_DOCUMENT_COLOR: Stream[
    types.DocumentColorParams,
    Sequence[types.ColorInformation],
    Progress[Sequence[types.ColorInformation]],
] = build_stream(types.TEXT_DOCUMENT_DOCUMENT_COLOR)
TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: Stream[
    types.DocumentHighlightParams,
    Sequence[types.DocumentHighlight] | None,
    Progress[Sequence[types.DocumentHighlight]],
] = build_stream(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
TEXT_DOCUMENT_DOCUMENT_LINK: Stream[
    types.DocumentLinkParams,
    Sequence[types.DocumentLink] | None,
    Progress[Sequence[types.DocumentLink]],
] = build_stream(types.TEXT_DOCUMENT_DOCUMENT_LINK)
TEXT_DOCUMENT_DOCUMENT_SYMBOL: Stream[
    types.DocumentSymbolParams,
    Sequence[types.SymbolInformation] | Sequence[types.DocumentSymbol] | None,
    Progress[Sequence[types.SymbolInformation] | Sequence[types.DocumentSymbol]],
] = build_stream(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
TEXT_DOCUMENT_FOLDING_RANGE: Stream[
    types.FoldingRangeParams,
    Sequence[types.FoldingRange] | None,
    Progress[Sequence[types.FoldingRange]],
] = build_stream(types.TEXT_DOCUMENT_FOLDING_RANGE)
TEXT_DOCUMENT_FORMATTING: Stream[
    types.DocumentFormattingParams,
    Sequence[types.TextEdit] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_FORMATTING)
TEXT_DOCUMENT_HOVER: Stream[types.HoverParams, types.Hover | None, WorkDone] = build_stream(types.TEXT_DOCUMENT_HOVER)
TEXT_DOCUMENT_IMPLEMENTATION: Stream[
    types.ImplementationParams,
    types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None,
    Progress[Sequence[types.Location] | Sequence[types.LocationLink]],
] = build_stream(types.TEXT_DOCUMENT_IMPLEMENTATION)
TEXT_DOCUMENT_INLAY_HINT: Stream[
    types.InlayHintParams,
    Sequence[types.InlayHint] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_INLAY_HINT)
TEXT_DOCUMENT_INLINE_COMPLETION: Stream[
    types.InlineCompletionParams,
    types.InlineCompletionList | Sequence[types.InlineCompletionItem] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_INLINE_COMPLETION)
TEXT_DOCUMENT_INLINE_VALUE: Stream[
    types.InlineValueParams,
    Sequence[types.InlineValueText | types.InlineValueVariableLookup | types.InlineValueEvaluatableExpression] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_INLINE_VALUE)
TEXT_DOCUMENT_LINKED_EDITING_RANGE: Stream[
    types.LinkedEditingRangeParams,
    types.LinkedEditingRanges | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_LINKED_EDITING_RANGE)
TEXT_DOCUMENT_MONIKER: Stream[
    types.MonikerParams,
    Sequence[types.Moniker] | None,
    Progress[Sequence[types.Moniker]],
] = build_stream(types.TEXT_DOCUMENT_MONIKER)
TEXT_DOCUMENT_ON_TYPE_FORMATTING: Method[
    types.DocumentOnTypeFormattingParams,
    Sequence[types.TextEdit] | None,
] = build_method(types.TEXT_DOCUMENT_ON_TYPE_FORMATTING)
TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY: Stream[
    types.CallHierarchyPrepareParams,
    Sequence[types.CallHierarchyItem] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
TEXT_DOCUMENT_PREPARE_RENAME: Stream[
    types.PrepareRenameParams,
    types.Range | types.PrepareRenamePlaceholder | types.PrepareRenameDefaultBehavior | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_PREPARE_RENAME)
TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY: Stream[
    types.TypeHierarchyPrepareParams,
    Sequence[types.TypeHierarchyItem] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY)
TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: Notification[types.PublishDiagnosticsParams] = build_notification(
    types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
)
TEXT_DOCUMENT_RANGES_FORMATTING: Stream[
    types.DocumentRangesFormattingParams,
    Sequence[types.TextEdit] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_RANGES_FORMATTING)
TEXT_DOCUMENT_RANGE_FORMATTING: Stream[
    types.DocumentRangeFormattingParams,
    Sequence[types.TextEdit] | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_RANGE_FORMATTING)
TEXT_DOCUMENT_REFERENCES: Stream[
    types.ReferenceParams,
    Sequence[types.Location] | None,
    Progress[Sequence[types.Location]],
] = build_stream(types.TEXT_DOCUMENT_REFERENCES)
TEXT_DOCUMENT_RENAME: Stream[
    types.RenameParams,
    types.WorkspaceEdit | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_RENAME)
TEXT_DOCUMENT_SELECTION_RANGE: Stream[
    types.SelectionRangeParams,
    Sequence[types.SelectionRange] | None,
    Progress[Sequence[types.SelectionRange]],
] = build_stream(types.TEXT_DOCUMENT_SELECTION_RANGE)
TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: Stream[
    types.SemanticTokensParams,
    types.SemanticTokens | None,
    Progress[types.SemanticTokensPartialResult],
] = build_stream(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL)
TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA: Stream[
    types.SemanticTokensDeltaParams,
    types.SemanticTokens | types.SemanticTokensDelta | None,
    Progress[types.SemanticTokensPartialResult | types.SemanticTokensDeltaPartialResult],
] = build_stream(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA)
TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE: Stream[
    types.SemanticTokensRangeParams,
    types.SemanticTokens | None,
    Progress[types.SemanticTokensPartialResult],
] = build_stream(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE)
TEXT_DOCUMENT_SIGNATURE_HELP: Stream[
    types.SignatureHelpParams,
    types.SignatureHelp | None,
    WorkDone,
] = build_stream(types.TEXT_DOCUMENT_SIGNATURE_HELP)
TEXT_DOCUMENT_TYPE_DEFINITION: Stream[
    types.TypeDefinitionParams,
    types.Location | Sequence[types.Location] | Sequence[types.LocationLink] | None,
    Progress[Sequence[types.Location] | Sequence[types.LocationLink]],
] = build_stream(types.TEXT_DOCUMENT_TYPE_DEFINITION)
TEXT_DOCUMENT_WILL_SAVE: Notification[types.WillSaveTextDocumentParams] = build_notification(
    types.TEXT_DOCUMENT_WILL_SAVE
)
TEXT_DOCUMENT_WILL_SAVE_WAIT_UNTIL: Method[
    types.WillSaveTextDocumentParams,
    Sequence[types.TextEdit] | None,
] = build_method(types.TEXT_DOCUMENT_WILL_SAVE_WAIT_UNTIL)
TYPE_HIERARCHY_SUBTYPES: Stream[
    types.TypeHierarchySubtypesParams,
    Sequence[types.TypeHierarchyItem] | None,
    Progress[Sequence[types.TypeHierarchyItem]],
] = build_stream(types.TYPE_HIERARCHY_SUBTYPES)
TYPE_HIERARCHY_SUPERTYPES: Stream[
    types.TypeHierarchySupertypesParams,
    Sequence[types.TypeHierarchyItem] | None,
    Progress[Sequence[types.TypeHierarchyItem]],
] = build_stream(types.TYPE_HIERARCHY_SUPERTYPES)
WINDOW_LOG_MESSAGE: Notification[types.LogMessageParams] = build_notification(types.WINDOW_LOG_MESSAGE)
WINDOW_SHOW_DOCUMENT: Method[
    types.ShowDocumentParams,
    types.ShowDocumentResult,
] = build_method(types.WINDOW_SHOW_DOCUMENT)
WINDOW_SHOW_MESSAGE: Notification[types.ShowMessageParams] = build_notification(types.WINDOW_SHOW_MESSAGE)
WINDOW_SHOW_MESSAGE_REQUEST: Method[
    types.ShowMessageRequestParams,
    types.MessageActionItem | None,
] = build_method(types.WINDOW_SHOW_MESSAGE_REQUEST)
WINDOW_WORK_DONE_PROGRESS_CANCEL: Notification[types.WorkDoneProgressCancelParams] = build_notification(
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL
)
WINDOW_WORK_DONE_PROGRESS_CREATE: Method[
    types.WorkDoneProgressCreateParams,
    None,
] = build_method(types.WINDOW_WORK_DONE_PROGRESS_CREATE)
WORKSPACE_APPLY_EDIT: Method[
    types.ApplyWorkspaceEditParams,
    types.ApplyWorkspaceEditResult,
] = build_method(types.WORKSPACE_APPLY_EDIT)
WORKSPACE_CODE_LENS_REFRESH: Method[None, None] = build_method(types.WORKSPACE_CODE_LENS_REFRESH)
WORKSPACE_CONFIGURATION: Method[types.ConfigurationParams, Sequence[Any]] = build_method(types.WORKSPACE_CONFIGURATION)
WORKSPACE_DIAGNOSTIC: Stream[
    types.WorkspaceDiagnosticParams,
    types.WorkspaceDiagnosticReport,
    Progress[types.WorkspaceDiagnosticReportPartialResult],
] = build_stream(types.WORKSPACE_DIAGNOSTIC)
WORKSPACE_DIAGNOSTIC_REFRESH: Method[None, None] = build_method(types.WORKSPACE_DIAGNOSTIC_REFRESH)
WORKSPACE_DID_CHANGE_CONFIGURATION: Notification[types.DidChangeConfigurationParams] = build_notification(
    types.WORKSPACE_DID_CHANGE_CONFIGURATION
)
WORKSPACE_DID_CHANGE_WATCHED_FILES: Notification[types.DidChangeWatchedFilesParams] = build_notification(
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES
)
WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: Notification[types.DidChangeWorkspaceFoldersParams] = build_notification(
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS
)
WORKSPACE_DID_CREATE_FILES: Notification[types.CreateFilesParams] = build_notification(types.WORKSPACE_DID_CREATE_FILES)
WORKSPACE_DID_DELETE_FILES: Notification[types.DeleteFilesParams] = build_notification(types.WORKSPACE_DID_DELETE_FILES)
WORKSPACE_DID_RENAME_FILES: Notification[types.RenameFilesParams] = build_notification(types.WORKSPACE_DID_RENAME_FILES)
WORKSPACE_EXECUTE_COMMAND: Stream[
    types.ExecuteCommandParams,
    Any,
    WorkDone,
] = build_stream(types.WORKSPACE_EXECUTE_COMMAND)
WORKSPACE_FOLDING_RANGE_REFRESH: Method[None, None] = build_method(types.WORKSPACE_FOLDING_RANGE_REFRESH)
WORKSPACE_INLAY_HINT_REFRESH: Method[None, None] = build_method(types.WORKSPACE_INLAY_HINT_REFRESH)
WORKSPACE_INLINE_VALUE_REFRESH: Method[None, None] = build_method(types.WORKSPACE_INLINE_VALUE_REFRESH)
WORKSPACE_SEMANTIC_TOKENS_REFRESH: Method[None, None] = build_method(types.WORKSPACE_SEMANTIC_TOKENS_REFRESH)
WORKSPACE_SYMBOL: Stream[
    types.WorkspaceSymbolParams,
    Sequence[types.SymbolInformation] | Sequence[types.WorkspaceSymbol] | None,
    Progress[Sequence[types.SymbolInformation] | Sequence[types.WorkspaceSymbol]],
] = build_stream(types.WORKSPACE_SYMBOL)
WORKSPACE_SYMBOL_RESOLVE: Method[
    types.WorkspaceSymbol,
    types.WorkspaceSymbol,
] = build_method(types.WORKSPACE_SYMBOL_RESOLVE)
WORKSPACE_TEXT_DOCUMENT_CONTENT: Method[
    types.TextDocumentContentParams,
    types.TextDocumentContentResult,
] = build_method(types.WORKSPACE_TEXT_DOCUMENT_CONTENT)
WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH: Method[
    types.TextDocumentContentRefreshParams,
    None,
] = build_method(types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH)
WORKSPACE_WILL_CREATE_FILES: Method[
    types.CreateFilesParams,
    types.WorkspaceEdit | None,
] = build_method(types.WORKSPACE_WILL_CREATE_FILES)
WORKSPACE_WILL_DELETE_FILES: Method[
    types.DeleteFilesParams,
    types.WorkspaceEdit | None,
] = build_method(types.WORKSPACE_WILL_DELETE_FILES)
WORKSPACE_WILL_RENAME_FILES: Method[
    types.RenameFilesParams,
    types.WorkspaceEdit | None,
] = build_method(types.WORKSPACE_WILL_RENAME_FILES)
WORKSPACE_WORKSPACE_FOLDERS: Method[
    None,
    Sequence[types.WorkspaceFolder] | None,
] = build_method(types.WORKSPACE_WORKSPACE_FOLDERS)
