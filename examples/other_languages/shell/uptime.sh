#!/usr/bin/env bash
# An extension with a tool and a command, in a shell with jq. Messages are handled one after the other.
LC_ALL=C              # so that `read -N` and ${#...} count bytes
exec 3>&1 1>&2        # the frames are written to 3; what a program prints goes to stderr

send() { printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1" >&3; }
respond() { send "$(jq -cn --argjson id "$id" --argjson result "$1" '{jsonrpc: "2.0", id: $id, result: $result}')"; }
reject() {
  send "$(jq -cn --argjson id "$id" --argjson code "$1" --arg message "$2" \
    '{jsonrpc: "2.0", id: $id, error: {code: $code, message: $message}}')"
}
output() { # KIND CONTENT
  send "$(jq -cn --argjson run "$run" --arg kind "$1" --arg content "$2" \
    '{jsonrpc: "2.0", method: "command.output", params: {request_id: $run, event: {kind: $kind, content: $content}}}')"
}
member() { jq -c "$1" <<<"$message"; }

while true; do
  length=
  while IFS= read -r header && header=${header%$'\r'} && [[ -n $header ]]; do
    [[ ${header,,} == content-length:* ]] && length=${header#*:}
  done
  [[ -n $length ]] || exit 0 # stdin has ended: the host is gone
  IFS= read -r -N $((length)) message
  id=$(member .id) run=$(member .params.request_id)
  case $(member '[.method, .params.name // .params.command // ""] | join(" ")') in
    '"initialize "') respond '{"protocol_version": 1, "capabilities": {"tools": [{"name": "uptime",
      "description": "How long this machine has been up.", "read_only": true, "input_schema": {"type": "object"}}]}}' ;;
    '"tool.call uptime"') respond "$(uptime -p | jq -R .)" ;;
    '"tool.call '*) reject -32602 "there is no such tool" ;;
    '"command.invoke load"') output text "$(cut -d' ' -f1-3 /proc/loadavg)"; respond null ;;
    '"command.invoke '*) reject -32602 "there is no such command" ;;
    '"shutdown "') respond null; exit 0 ;;
    *) [[ $id == null ]] || reject -32601 "unknown method: $(member .method)" ;;
  esac
done
