#!/bin/sh
# An extension for SynapsCLI in the shell: it declares nothing, and blocks tools that would touch /etc.

LC_ALL=C

# Its messages end lines with a bare LF, and it answers `"capabilities": []`: hosts take both.
send() {
    printf 'content-length: %d\n\n%s' "${#1}" "$1"
}

while true; do
    length=0
    while IFS= read -r line; do
        line=$(printf '%s' "$line" | tr -d '\r')
        [ -z "$line" ] && break
        length=${line##*: }
    done
    [ "$length" -gt 0 ] || exit 0
    body=$(dd bs=1 count="$length" 2>/dev/null)
    id=$(printf '%s' "$body" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $body in
    *'"result":'* | *'"error":'*) # a response
        ;;
    *'"method":"initialize"'*)
        send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocol_version\":1,\"capabilities\":[]}}"
        ;;
    *'"method":"hook.handle"'*/etc*)
        send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"action\":\"block\",\"reason\":\"/etc is not yours\"}}"
        ;;
    *'"method":"hook.handle"'*)
        send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"action\":\"continue\"}}"
        ;;
    *'"method":"shutdown"'*)
        exit 0
        ;;
    *)
        [ -z "$id" ] || send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}"
        ;;
    esac
done
