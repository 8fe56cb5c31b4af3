// Returns what is wrong with the page, by rules of WCAG 2.2 that a program can
// check; the names are those of axe-core's rules.
(function () {
  "use strict";
  var wrong = [];
  function no(rule, element) { wrong.push(rule + ": " + (element.outerHTML || String(element)).slice(0, 160)); }
  function all(selector) { return [].slice.call(document.querySelectorAll(selector)); }
  function shown(e) { return e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden"; }
  function name(e) {
    var by = e.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map(function (id) { var n = document.getElementById(id); return n ? n.textContent : ""; }).join(" ").trim();
    return (e.getAttribute("aria-label") || e.textContent || "").trim();
  }
  if (!document.documentElement.lang) no("html-has-lang", document.documentElement);
  if (!document.title.trim()) no("document-title", document.head);
  ["main", "header", "nav", "footer"].forEach(function (l) { if (all(l).length !== 1) no("landmark " + l, document.body); });
  if (all("h1").length !== 1) no("one h1", document.body);
  var ids = {};
  all("[id]").forEach(function (e) { if (ids[e.id]) no("duplicate-id", e); ids[e.id] = true; });
  ["aria-labelledby", "aria-describedby", "aria-controls"].forEach(function (a) {
    all("[" + a + "]").forEach(function (e) {
      e.getAttribute(a).split(/\s+/).forEach(function (id) { if (!ids[id]) no("aria-valid-attr-value", e); });
    });
  });
  all("a[href^='#']").forEach(function (e) { if (!ids[e.getAttribute("href").slice(1)]) no("skip-link", e); });
  all("button,a,[role=img],[role=group],[role=region],[role=toolbar],section").forEach(function (e) { if (!name(e)) no("name", e); });
  all("section,nav").forEach(function (e) { if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) no("region name", e); });
  var last = 0;
  all("h1,h2,h3,h4").forEach(function (e) { var level = +e.tagName[1]; if (level > last + 1) no("heading-order", e); last = level; });
  all("table").forEach(function (e) { if (!e.caption || !e.caption.textContent.trim()) no("table caption", e); });
  all("th").forEach(function (e) { if (!e.scope) no("scope-attr-valid", e); if (!e.textContent.trim()) no("empty-table-header", e); });
  all("tbody tr").forEach(function (e) { if (!e.querySelector("th[scope=row]")) no("row header", e); });
  all("img:not([alt])").forEach(function (e) { no("image-alt", e); });
  all("[tabindex]").forEach(function (e) { if (e.tabIndex > 0) no("tabindex", e); });
  all("button").filter(shown).forEach(function (e) { var b = e.getBoundingClientRect(); if (b.width < 24 || b.height < 24) no("target-size", e); });

  function parse(c) { var m = c.match(/[\d.]+/g).map(Number); return { r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1 }; }
  function luminance(c) {
    return [c.r, c.g, c.b].map(function (v) { v /= 255; return v <= .04045 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); })
      .reduce(function (s, v, i) { return s + v * [.2126, .7152, .0722][i]; }, 0);
  }
  function ground(e) {
    for (; e; e = e.parentElement) {
      var c = getComputedStyle(e).backgroundColor;
      if (c && parse(c).a === 1) return parse(c);
    }
    return { r: 255, g: 255, b: 255, a: 1 };
  }
  var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = 0;
  for (var n = walker.nextNode(); n; n = walker.nextNode()) {
    var e = n.parentElement;
    if (!n.nodeValue.trim() || !shown(e) || e.closest("script,style,.skip,.labels,[aria-hidden=true]")) continue;
    if (e.tagName === "title" || e.tagName === "desc") continue;
    seen++;
    var inside = e instanceof SVGElement, style = getComputedStyle(e);
    var color = parse(inside ? style.fill : style.color), a = luminance(color), b = luminance(ground(e));
    var ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) no("color-contrast " + ratio.toFixed(2), e);
  }
  if (seen < 100) no("only " + seen + " texts were looked at", document.body);
  return wrong;
})()
