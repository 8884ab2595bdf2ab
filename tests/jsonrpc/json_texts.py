"""Valid and invalid JSON texts by the rules of RFC 8259, each with a name for what it tests.

All stand in an array or an object, so that each can be the params of a request as it is. Where the RFC leaves the
choice to the reader (surrogates without a partner, text that is not UTF-8, a byte order mark) becket refuses.
"""

from __future__ import annotations

ACCEPTED: dict[str, bytes] = {}
REJECTED: dict[str, bytes] = {}


def accept(kind: str, *elements: str | bytes) -> None:
    """Files each as the only element of an array."""
    for element in elements:
        text = element.encode() if isinstance(element, str) else element
        ACCEPTED[f"{kind}: {text!r}"] = b"[" + text + b"]"


def reject(kind: str, *elements: str | bytes) -> None:
    for element in elements:
        text = element.encode() if isinstance(element, str) else element
        REJECTED[f"{kind}: {text!r}"] = b"[" + text + b"]"


def accept_whole(kind: str, *texts: str | bytes) -> None:
    for text in texts:
        encoded = text.encode() if isinstance(text, str) else text
        ACCEPTED[f"{kind}: {encoded!r}"] = encoded


def reject_whole(kind: str, *texts: str | bytes) -> None:
    for text in texts:
        encoded = text.encode() if isinstance(text, str) else text
        REJECTED[f"{kind}: {encoded!r}"] = encoded


# -- numbers

accept("integer", "0", "-0", "1", "-1", "10", "123", "-9007199254740993", "9223372036854775807", "18446744073709551615")
accept("integer beyond 64 bits", "18446744073709551616", "-9223372036854775809", "1" * 100)
accept("fraction", "0.0", "-0.0", "0.5", "1.5", "-123.456", "0.1000000000000000055511151231257827", "1." + "0" * 50)
accept("exponent", "1e1", "1E1", "1e+1", "1E+1", "1e-1", "1E-1", "0e0", "0e+1", "0E-1", "1.5e10", "123.456e78", "1e05")
accept("end of the doubles", "1.7976931348623157e308", "5e-324", "2.2250738585072011e-308", "1e-400", "-1e-400")

reject("sign", "+1", "++1", "--1", "-", "+", "- 1", "-+1", "+-1", "-a", "+0", "\u22121", "\u20101")
reject("leading zero", "01", "-01", "00", "012", "-012", "00.5", "0123.4")
reject("point", ".5", "-.5", "1.", "-1.", "0.", "1.e1", "0.e1", "-2.e-3", "1..2", "0.1.2", ".", "1.a", "-.", ".e1")
reject("exponent", "1e", "1E", "1e+", "1e-", "0e", "0E+", "1.5e", "1.5e+", "1eE2", "1ee2", "1e1.5", "1e 5", "1ea", "e1")
reject("not a number", "NaN", "-NaN", "nan", "Infinity", "-Infinity", "+Infinity", "inf", "-inf", "\u221e")
reject(
    "other notation",
    "0x10",
    "0X10",
    "0b1",
    "0o7",
    "1_000",
    "1 000",
    "1L",
    "1f",
    "1/2",
    "1a",
    "\uff11",
    "\u0665",
    "1\u0660",
)

# -- literals

accept("literal", "true", "false", "null", "true,false,null")
reject(
    "literal",
    "tru",  # codespell:ignore tru
    "truee",
    "True",
    "TRUE",
    "fals",  # codespell:ignore fals
    "False",
    "nul",
    "nulll",  # codespell:ignore nulll
    "NULL",
    "None",
    "undefined",
    "yes",
    "t",
    "n",
)
reject("literal with a sign or escape", "-true", "+null", "\\u0074rue", "tr ue", "true false")  # codespell:ignore ue

# -- strings

accept(
    "text", '""', '"a"', '"two words"', '"é"', '"\u20ac"', '"😀"', '"\u2028\u2029"', '"\ufeff"', '"\x7f"', '"\u0080"'
)
accept("no character", '"\uffff"', '"\ufdd0"', '"\U0010ffff"', '"\U0001fffe"', '"\ue000"')
accept("escape", *(f'"\\{letter}"' for letter in '"\\/bfnrt'))
accept(
    "escape of a code point", '"\\u0041"', '"\\u00e9"', '"\\u20AC"', '"\\u20ac"', '"\\u0000"', '"\\u001f"', '"\\uFFFF"'
)
accept("pair of surrogates", '"\\ud83d\\ude00"', '"\\uD834\\uDd1e"', '"\\udbff\\udfff"', '"a\\ud800\\udc00z"')
accept(
    "looks like something else",
    '"[1,2]"',
    '"{}"',
    '"// no comment"',
    '"/* nor this */"',
    '"\\\\u0041"',
    '"\\\\"',
    '"NaN"',
)

reject("control character", *(f'"{chr(code)}"' for code in range(0x20)))
reject("unknown escape", *(f'"\\{letter}"' for letter in "avexU0123' \n\tN"), '"\\é"', '"\\\u2028"', '"\\\x00"')
reject(
    "unfinished escape", '"\\u"', '"\\u0"', '"\\u00"', '"\\u004"', '"\\u004g"', '"\\u 041"', '"\\u{41}"', '"\\u00-1"'
)
reject(
    "surrogate alone", '"\\ud800"', '"\\udfff"', '"\\ud800a"', '"\\ud800\\n"', '"\\ud800\\u0041"', '"\\udc00\\ud800"'
)
reject("surrogate alone", '"\\ud800\\ud800"', '"\\ud800\\udc0"', '"\\ud800\\u"', '"\\ud800\\', '"a\\udc00"')
reject("not UTF-8", b'"\xff"', b'"\xfe"', b'"\x80"', b'"\xbf"', b'"\xc3"', b'"\xe2\x82"', b'"\xf0\x9f\x98"', b'"\xe9"')
reject("not UTF-8: too long", b'"\xc0\x80"', b'"\xc1\xbf"', b'"\xe0\x80\x80"', b'"\xf0\x80\x80\x80"')
reject(
    "not UTF-8: no code point", b'"\xed\xa0\x80"', b'"\xed\xbf\xbf"', b'"\xf4\x90\x80\x80"', b'"\xf8\x88\x80\x80\x80"'
)
reject("quotes", "'a'", '"a', 'a"', '"a""b"', '"a"b', "a", "\u201ca\u201d", "`a`", '"', '"\\"', '"\\\\\\"', '"a\\')

# -- arrays and objects

accept_whole("array", "[]", "[[]]", "[[],[[]]]", "[1,2,3]", '["a",1,null,{"b":[]}]', "[" * 60 + "]" * 60)
accept_whole("object", "{}", '{"a":1}', '{"":0}', '{"a":{"b":{"c":null}}}', '{"a":1,"b":2}', '{"a b\\u0041\\n":1}')
accept_whole(
    "object with odd names",
    '{"\u20ac":1}',
    '{"\\ud83d\\ude00":1}',
    '{"__proto__":1}',
    '{"1":1}',
    '{"' + "k" * 200 + '":1}',
)
accept_whole("one name twice, further in", '{"a":1,"a":2}', '{"a":1,"a":1}', '[{"a":{},"a":[]}]')
accept_whole("white space", "[ ]", " [1]", "[1] ", "\t[\n1\r,\n2\t]\r\n", '{ "a" : 1 , "b" : [ ] }', "\n{\n}\n")

reject_whole(
    "comma", "[1,]", "[,1]", "[,]", "[1,,2]", "[,,]", "[1,2,]", "[[],]", '{"a":1,}', '{,"a":1}', "{,}", '{"a":1,,"b":2}'
)
reject_whole(
    "no comma", "[1 2]", '["a" "b"]', "[[][]]", "[3[4]]", '{"a":1 "b":2}', "[1 true]", '{"a":{} "b":[]}', "[1\n2]"
)
reject_whole(
    "other separator", "[1;2]", "[1:2]", '{"a":1;"b":2}', '{"a"=1}', '{"a"=>1}', '{"a",1}', '{"a":1:2}', '{"a"::1}'
)
reject_whole(
    "name", "{a:1}", "{'a':1}", "{1:1}", "{null:1}", "{:1}", "{[]:1}", '{"a"b:1}', '{"a}', '{\\"a":1}', '{"a\n":1}'
)
reject_whole("name without a value", '{"a"}', '{"a":}', '{"a" 1}', '{"a","b"}', '{"a":1,"b"}', '{"a":1,"b":}')
reject_whole(
    "not closed", "[", "{", "[1", "[1,", '{"a', '{"a"', '{"a":', '{"a":1', '{"a":1,', "[[]", '[{"a":[]', '["a', '["a"'
)
reject_whole("closed otherwise", "[1}", '{"a":1]', "[}", "{]", "([1])", "<1>", "[(1)]", "[{]}", '{"a":[}]')
reject_whole("closed twice", "[1]]", '{"a":1}}}', "[[]]]")
reject_whole(
    "more than one", "[1][2]", "[1]1", "[1]x", '[1]"a"', "[1] [2]", "{}[]", "[1]\x00", "[1]#", "[1]\\n", "[1]\u2060"
)
reject_whole(
    "comment", "[1 /* a */]", "[1] // a", "[ // a\n1]", "[1 # a\n]", "/**/[1]", '{"a":/**/1}', "[1]/**/", "<!-- -->[1]"
)
reject_whole(
    "other white space", "[1\x0c]", "[1\x0b]", "[1\xa0]", "[1\u2003]", "[1\u2028]", "[\u3000]", "[1\x85]", "[\u2060]"
)
reject_whole("byte order mark", b"\xef\xbb\xbf[1]", b"[\xef\xbb\xbf1]", b"[1]\xef\xbb\xbf")
reject_whole(
    "other encoding",
    "[1]".encode("utf-16"),
    "[1]".encode("utf-16-le"),
    "[1]".encode("utf-16-be"),
    "[1]".encode("utf-32"),
)
reject_whole(
    "no JSON at all", "", " ", "hello", "*", "\\u005b1]", "<a/>", "[1", "]", "%5B1%5D", "å", "\x00", "@[1]", "\x1b[2J"
)
reject_whole(
    "not UTF-8 in a name", b'{"\xff":1}', b'{"\xc3":1}', b'{"a\xed\xa0\x80":1}', b"{\xff}", b"[\xff]", b"\xff[1]"
)
