/* SPDX-License-Identifier: MIT
 * The chat page: a single file that loads nothing but from this server. */
#include "tools/tandem-server/srv_routes.h"

#include <string.h>

static const char page[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>Tandem</title>\n"
    "<meta name=viewport content='width=device-width'>\n"
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; connect-src 'self'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
    "<style>\n"
    ":root{color-scheme:light "
    "dark;--page:#fff;--text:#1a1a1a;--box:#fff;--line:#999;--user:#e8e8e8;"
    "--fault:#b00}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#181818;--text:#e6e6e6;--box:#242424;"
    "--line:#666;--user:#333;--fault:#ff8080}}\n"
    "html{background:var(--page);color:var(--text)}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:0 auto;padding:1em}\n"
    "textarea,input,button{background:var(--box);color:var(--text);border:1px solid var(--line);"
    "border-radius:.3em;padding:.3em}\n"
    "#log p{white-space:pre-wrap;padding:.5em .8em;border-radius:.5em;margin:.5em 0}\n"
    ".user{background:var(--user)}.fault{color:var(--fault)}\n"
    "form{display:flex;gap:.5em}textarea{flex:1;font:inherit}\n"
    "details{margin:.5em 0}label{display:block}small{opacity:.7}\n"
    "</style>\n"
    "<h1>Tandem</h1><div id=log aria-live=polite></div>\n"
    "<form id=form><textarea id=text rows=3 autofocus aria-label=Message></textarea>\n"
    "<button id=send>Send</button></form><small id=speed></small>\n"
    "<details><summary>Settings</summary>\n"
    "<label>System <input id=system size=40></label>\n"
    "<label>Temperature <input id=temperature type=number step=0.1 min=0 value=0.7></label>\n"
    "<label>Tokens of an answer <input id=tokens type=number min=1 value=512></label>\n"
    "<label>API key <input id=key type=password></label>\n"
    "<button id=anew type=button>New conversation</button></details>\n"
    "<script>\n"
    "'use strict';\n"
    "const $=id=>document.getElementById(id);let said=[],stop=null;\n"
    "function show(kind,text){const p=document.createElement('p');p.className=kind;"
    "p.textContent=text;$('log').append(p);p.scrollIntoView();return p}\n"
    "$('anew').onclick=()=>{said=[];$('log').textContent=''};\n"
    "$('text').onkeydown=e=>{if(e.key==='Enter'&&!e.shiftKey){e.preventDefault();"
    "$('form').requestSubmit()}};\n"
    "$('form').onsubmit=async e=>{e.preventDefault();\n"
    " if(stop){stop.abort();return}\n"
    " const text=$('text').value.trim();if(!text)return;\n"
    " $('text').value='';said.push({role:'user',content:text});show('user',text);\n"
    " const out=show('assistant','');let answer='';stop=new AbortController();\n"
    " $('send').textContent='Stop';\n"
    " try{\n"
    "  const system=$('system').value;\n"
    "  const messages=system?[{role:'system',content:system},...said]:said;\n"
    "  const headers={'Content-Type':'application/json'};\n"
    "  if($('key').value)headers.Authorization='Bearer '+$('key').value;\n"
    "  const reply=await fetch('/v1/chat/completions',{method:'POST',headers,"
    "signal:stop.signal,body:JSON.stringify({messages,stream:true,"
    "stream_options:{include_usage:true},temperature:+$('temperature').value,"
    "max_tokens:+$('tokens').value})});\n"
    "  if(!reply.ok)throw Error((await reply.json()).error.message);\n"
    "  const reader=reply.body.pipeThrough(new TextDecoderStream()).getReader();let rest='';\n"
    "  for(;;){const{done,value}=await reader.read();if(done)break;\n"
    "   const parts=(rest+value).split('\\n\\n');rest=parts.pop();\n"
    "   for(const part of parts){if(part==='data: [DONE]')continue;\n"
    "    const event=JSON.parse(part.slice(6));\n"
    "    if(event.error)throw Error(event.error.message);\n"
    "    const delta=event.choices[0]&&event.choices[0].delta.content;\n"
    "    if(delta){answer+=delta;out.textContent=answer}\n"
    "    if(event.timings)$('speed').textContent="
    "event.timings.predicted_per_second.toFixed(1)+' tokens/s'}}\n"
    " }catch(fault){if(fault.name!=='AbortError')show('fault',fault.message)}\n"
    " said.push({role:'assistant',content:answer});stop=null;$('send').textContent='Send'};\n"
    "</script></html>\n";

void tnd_srv_page(const struct srv_server *server, const struct srv_request *request,
                  struct srv_reply *reply)
{
    (void)server;
    (void)request;
    reply->type = "text/html; charset=utf-8";
    tnd_srv_add(&reply->body, page, sizeof(page) - 1);
}
