"""The stylesheet of the hosted payment page."""

STYLE = """
:root{color-scheme:light dark;--ground:#f6f5f4;--card:#fff;--ink:#1d1b1a;--soft:#5d5855;--line:#dedad7;--edge:#8a837f;--main:#b3154f;
--on-main:#fff;--band:#ffdf8a;--on-band:#3d2c00;--bad:#a3161c;--bad-ground:#fdeceb;--good:#12703c}
@media (prefers-color-scheme:dark){:root{--ground:#161413;--card:#211e1d;--ink:#f4f0ee;--soft:#b5aca7;--line:#3d3836;--edge:#8d8580;
--main:#f27aa6;--on-main:#2a0413;--band:#4a3a0a;--on-band:#ffe6a3;--bad:#ffb3ae;--bad-ground:#3a1917;--good:#7fdca5}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
.band{margin:0;padding:.5rem 1rem;background:var(--band);color:var(--on-band);text-align:center;font-size:.875rem}
.band b{margin-inline-end:.35rem}
main{max-width:27rem;margin:0 auto;padding:1.25rem 1rem 0}
h1,h2,p{margin:0}
.shop{display:flex;align-items:center;gap:.5rem;color:var(--soft);font-size:.9375rem}
.shop svg{color:var(--main)}
.summary{padding:0 .25rem 1.25rem}
.summary h1{font-size:2.5rem;line-height:1.2;letter-spacing:-.02em;margin-top:.5rem;font-variant-numeric:tabular-nums}
.item,.host{color:var(--soft)}
.host{font-size:.8125rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:1.125rem;margin-bottom:1rem;
display:flex;flex-direction:column;gap:.625rem}
h2{font-size:1.0625rem;line-height:1.3}
.row{display:flex;gap:1rem;padding:.375rem 0;border-bottom:1px solid var(--line)}
.label{flex:0 0 4rem;color:var(--soft)}
.value{overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
small{display:block;color:var(--soft);font-size:.8125rem}
button,a.main{font:inherit;min-height:48px;border-radius:10px;border:1px solid var(--edge);background:var(--card);
color:var(--ink);padding:.625rem 1rem;cursor:pointer;text-align:center;text-decoration:none;width:100%}
button:hover,a.main:hover{border-color:var(--ink)}
button.main,a.main{background:var(--main);border-color:var(--main);color:var(--on-main);font-weight:600}
button.main{margin-top:.5rem;font-size:1.0625rem}
button:active{transform:translateY(1px)}
:focus-visible{outline:3px solid var(--main);outline-offset:2px}
a.quiet{color:var(--soft);text-align:center;padding:.625rem;min-height:44px}
.bench{background:none;border-style:dashed}
.bench h2{color:var(--soft);font-size:.9375rem}
.bench button{min-height:44px;font-size:.9375rem}
details button{margin-top:.625rem}
summary{cursor:pointer;padding:.625rem 0;color:var(--soft);font-size:.9375rem;min-height:44px}
.notice{background:var(--bad-ground);color:var(--bad);border-inline-start:4px solid var(--bad);border-radius:8px;
padding:.75rem 1rem;margin-bottom:1rem}
.end{align-items:center;text-align:center;padding:2rem 1.25rem;gap:1rem}
.end h1{font-size:1.5rem;line-height:1.25}
.end p{color:var(--soft)}
.sign{width:56px;height:56px;border-radius:50%;display:grid;place-items:center;font-size:1.75rem;color:var(--soft);
border:2px solid currentColor}
.sign.good{color:var(--good)}
footer{max-width:27rem;margin:0 auto;padding:.5rem 1.25rem 2rem;color:var(--soft);font-size:.8125rem;text-align:center}
@media (min-width:60rem){main{padding-top:3rem}}
"""
