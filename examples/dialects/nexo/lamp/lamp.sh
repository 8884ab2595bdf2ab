#!/bin/sh
# An extension for nexo in the shell: a lamp with one tool. Requests are lines, with a number as id.

state=off

while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    [ -n "$id" ] || continue # a notification, or not a message
    case $line in
    *'"method":"initialize"'*)
        result='{"tools":[{"name":"switch","description":"Switches the lamp."}]}'
        ;;
    *'"method":"tools/call"'*'"name":"switch"'*)
        if [ "$state" = off ]; then state=on; else state=off; fi
        result="{\"lamp\":\"$state\"}"
        ;;
    *'"method":"shutdown"'*)
        exit 0
        ;;
    *)
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}\n' "$id"
        continue
        ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
