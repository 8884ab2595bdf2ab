#!/usr/bin/env bash
# An extension with a tool and a command, in a shell with jq. Messages are handled one after the other.
LC_ALL=C              # so that `read -N` and ${#...} count bytes
exec 3>&1 1>&2        # the frames are written to 3; what a program prints goes to stderr
parse='if length == 1 then (.[0] | objects // {}) as $m | ($m.params | objects // {}) as $params |
    (($m.id | strings, numbers) // null, $params.request_id | tojson),
    if $m.jsonrpc != "2.0" or ($m.id | type | IN("string", "number", "null") | not) then "invalid"
    elif $m.method == null and ($m | has("result") or has("error")) then "response"
    elif $m.method | type != "string" then "invalid" elif $m | has("id") | not then "notification"
    else "\($m.method) \($params | .name // .command // .extension_protocol_version // "")" end else empty end'
send() { printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1" >&3; }
respond() { send "{\"jsonrpc\": \"2.0\", \"id\": $id, \"result\": $1}"; }
reject() { send "{\"jsonrpc\": \"2.0\", \"id\": $id, \"error\": {\"code\": $1, \"message\": \"$2\"}}"; }

while length= && IFS= read -r header; do # until stdin ends: the host is gone
  until [[ $header == $'\r' ]]; do
    [[ $header == *:*$'\r' ]] || exit 1 # not a header, so that the start of the next frame is not known
    if [[ ${header,,} == content-length:* ]]; then
      [[ -z $length && $header =~ :[[:blank:]]*([0-9]{1,7})[[:blank:]]*$'\r'$ ]] && length=${BASH_REMATCH[1]} || exit 1
    fi
    IFS= read -r header || exit 0
  done
  [[ -n $length ]] && IFS= read -r -N "$length" message || exit 1
  mapfile -t fields < <(jq -rs "$parse" <<<"$message"); id=${fields[0]:-null}
  case ${fields[2]} in
    '') reject -32700 "not JSON" ;;
    invalid) reject -32600 "not a message of JSON-RPC 2.0" ;;
    response | notification) ;;
    'initialize 1') respond '{"protocol_version": 1, "capabilities": {"tools": [{"name": "uptime", "read_only": true,
      "description": "How long this machine has been up.", "input_schema": {"type": "object"}}]}}' ;;
    initialize\ *) reject 1008 "only version 1 is supported" ;;
    'tool.call uptime') respond "$(uptime -p | jq -R .)" ;;
    'command.invoke load') send "{\"jsonrpc\": \"2.0\", \"method\": \"command.output\", \"params\": {\"request_id\":
      ${fields[1]}, \"event\": {\"kind\": \"text\", \"content\": \"$(cut -d' ' -f1-3 /proc/loadavg)\"}}}"
      respond null ;;
    tool.call\ * | command.invoke\ *) reject -32602 "there is no such tool or command" ;;
    shutdown\ *) respond null; exit 0 ;;
    *) reject -32601 "unknown method" ;;
  esac
done
