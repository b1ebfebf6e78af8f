/* SPDX-License-Identifier: MIT
 * The style sheet of the HTML report. Colours after Okabe and Ito's set, which people with any
 * colour vision can tell apart; dashes, markers, letters and patterns carry the same
 * information. */
#include "tools/report/report_parts.h"

static const char colours[] =
    ":root{color-scheme:light dark;--page:#fff;--ink:#1b1b1b;--soft:#595959;--rule:#d9d9d9;"
    "--box:#f5f6f8;--c0:#0072b2;--c1:#d55e00;--c2:#00805c;--c3:#b0558a;--c4:#8a6500;--c5:#2b8cc4;"
    "--c6:#6b6b6b;--c7:#5b3fa8;--c8:#a33b3b;--c9:#3f7d20;--c10:#00687a;--c11:#8f2d86}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#15171a;--ink:#eceff1;--soft:#a9b1b8;"
    "--rule:#3a3f45;--box:#1f2328;--c0:#56b4e9;--c1:#ff9248;--c2:#2fd0a0;--c3:#e8a0cb;--c4:#f0c44c;"
    "--c5:#9ad6ff;--c6:#bdbdbd;--c7:#b7a2ff;--c8:#ff9c9c;--c9:#a6e07c;--c10:#5fd4e6;--c11:#f0a0ec}}"
    "\n";

static const char page[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--page);color:var(--ink);"
    "font:1rem/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\n"
    "h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}"
    "h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid var(--rule)}"
    "h3{font-size:1.05rem;margin:1.5rem 0 .25rem}"
    "p,ul{margin:.4rem 0}ul{padding-left:1.3rem}\n"
    "h1,h2,h3,p,li,td,th,figcaption{overflow-wrap:anywhere}\n"
    ".soft,.note{color:var(--soft);font-size:.875rem}.note{display:block}\n"
    ".advice{background:var(--box);border-left:4px solid var(--c0);padding:.6rem 1rem;"
    "margin:1rem 0;border-radius:0 6px 6px 0}.advice h2,.advice h3{border:0;margin:.4rem 0}\n"
    "nav a{color:var(--c0);margin-right:1rem;white-space:nowrap}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));"
    "gap:1rem 1.5rem}\n"
    "figure{margin:.5rem 0;break-inside:avoid}"
    "figure>svg{width:100%;height:auto;display:block}"
    "figcaption{font-size:.875rem}figcaption b{display:block}\n"
    ".key{display:inline-flex;align-items:center;gap:.3rem;margin-right:.9rem}"
    ".key svg{width:34px;height:12px;flex:none}\n"
    "details{margin:.6rem 0}summary{cursor:pointer;color:var(--soft)}"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:.15rem .7rem;text-align:right;border-bottom:1px solid var(--rule);"
    "white-space:nowrap}thead th{border-bottom:2px solid var(--soft);white-space:normal}"
    "td.best{font-weight:700}\n"
    "footer{margin-top:3rem;border-top:1px solid var(--rule)}\n";

static const char drawing[] =
    "svg text{font-size:12px;fill:var(--soft)}svg .name{fill:var(--ink)}"
    ".mid{text-anchor:middle}.end{text-anchor:end}\n"
    ".grid{stroke:var(--rule);stroke-width:.7}.axis{stroke:var(--soft);fill:none}"
    ".line{fill:none;stroke-width:2}.band{stroke:none;fill-opacity:.18}"
    ".ring{fill:none;stroke-width:2}"
    ".guide{stroke:var(--soft);stroke-dasharray:2 4;fill:none}"
    ".cross{stroke:var(--ink);stroke-dasharray:4 3}svg .crosses{fill:var(--ink);font-size:11px;"
    "stroke:var(--page);stroke-width:3px;paint-order:stroke}\n"
    ".cell{stroke-width:1.5;fill-opacity:.5}.cell.noise{fill-opacity:.14}"
    "svg .letter{fill:var(--ink);font-size:11px;text-anchor:middle}svg .row{fill:var(--ink)}\n"
    ".bar{stroke:var(--ink);stroke-width:.6}.i0{fill:url(#hatch)}.i1{fill:var(--soft);"
    "fill-opacity:.45}.i2{fill:url(#dots)}.move{fill:none}.hatch{stroke:var(--ink);stroke-width:2}"
    ".dot{fill:var(--ink)}.paper{fill:var(--page)}"
    ".defs{position:absolute;width:0;height:0}\n"
    /* On a phone charts shrink, but their text must stay readable. */
    "@media (max-width:28rem){svg text{font-size:13.5px}svg .crosses{font-size:12.5px}}\n"
    "@media print{:root{--page:#fff;--ink:#000;--soft:#444;--rule:#ccc;--box:#fff}"
    "body{max-width:none;font-size:10pt}nav{display:none}h2,h3{break-after:avoid}"
    ".charts{grid-template-columns:1fr 1fr}}\n";

void tnd_report_style_sheet(struct tnd_text *out)
{
    static const char *const dashes[TND_REPORT_STYLES] = {"none", "8 3",      "2 3", "9 3 2 3",
                                                          "14 4", "5 2",      "1 2", "10 2 2 2 2 2",
                                                          "3 3",  "12 3 5 3", "6 6", "4 2 1 2"};
    tnd_text_add(out, colours);
    tnd_text_add(out, page);
    tnd_text_add(out, drawing);
    for (int i = 0; i < TND_REPORT_STYLES; i++) {
        tnd_text_printf(out,
                        ".s%d{stroke:var(--c%d);fill:var(--c%d)}.line.s%d{stroke-dasharray:%s}", i,
                        i, i, i, dashes[i]);
    }
    /* After the colours of the styles, to override their fill. */
    tnd_text_add(out, "\n.line,.ring{fill:none}.band,.mark:not(.hollow){stroke:none}"
                      ".mark.hollow{fill:var(--page);stroke-width:1.6}"
                      ".cell{stroke:var(--page)}.plain{stroke:var(--ink);fill:var(--ink)}"
                      ".line.plain{fill:none}.line.thin{stroke-width:1}\n");
}
