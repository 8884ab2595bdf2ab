"""What a client of becket's announces to its server: all that `becket.interop.lsp` can say and hear."""

from __future__ import annotations

from lsprotocol import types

__all__ = ["build_capabilities"]


def build_capabilities(*, applies_edits: bool, shows_documents: bool) -> types.ClientCapabilities:
    """Returns what a client can do that applies edits and shows documents, or does not."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(
            # Characters of Python's texts are those of UTF-32; every server knows UTF-16.
            position_encodings=[types.PositionEncodingKind.Utf32, types.PositionEncodingKind.Utf16],
        ),
        window=types.WindowClientCapabilities(
            work_done_progress=True,
            show_message=types.ShowMessageRequestClientCapabilities(),
            show_document=types.ShowDocumentClientCapabilities(support=shows_documents),
        ),
        workspace=types.WorkspaceClientCapabilities(
            apply_edit=applies_edits,
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            configuration=True,
            workspace_folders=True,
            did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
            execute_command=types.ExecuteCommandClientCapabilities(),
            symbol=types.WorkspaceSymbolClientCapabilities(),
        ),
        text_document=types.TextDocumentClientCapabilities(
            synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                related_information=True, version_support=True, code_description_support=True, data_support=True
            ),
            diagnostic=types.DiagnosticClientCapabilities(),
            hover=types.HoverClientCapabilities(content_format=BOTH_MARKUPS),
            completion=types.CompletionClientCapabilities(
                completion_item=types.ClientCompletionItemOptions(documentation_format=BOTH_MARKUPS)
            ),
            signature_help=types.SignatureHelpClientCapabilities(),
            declaration=types.DeclarationClientCapabilities(link_support=True),
            definition=types.DefinitionClientCapabilities(link_support=True),
            type_definition=types.TypeDefinitionClientCapabilities(link_support=True),
            implementation=types.ImplementationClientCapabilities(link_support=True),
            references=types.ReferenceClientCapabilities(),
            document_highlight=types.DocumentHighlightClientCapabilities(),
            document_symbol=types.DocumentSymbolClientCapabilities(hierarchical_document_symbol_support=True),
            code_action=types.CodeActionClientCapabilities(
                code_action_literal_support=types.ClientCodeActionLiteralOptions(
                    types.ClientCodeActionKindOptions([kind.value for kind in types.CodeActionKind])
                ),
                data_support=True,
                resolve_support=types.ClientCodeActionResolveOptions(["edit"]),
            ),
            formatting=types.DocumentFormattingClientCapabilities(),
            range_formatting=types.DocumentRangeFormattingClientCapabilities(),
            rename=types.RenameClientCapabilities(prepare_support=True),
        ),
    )


BOTH_MARKUPS = [types.MarkupKind.Markdown, types.MarkupKind.PlainText]
