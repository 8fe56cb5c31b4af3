(function () {
  "use strict";
  var data = [].map.call(document.querySelectorAll(".timeline-data"), function (e) { return JSON.parse(e.textContent); });
  if (!data.length) return;
  var NS = "http://www.w3.org/2000/svg", COLS = data[0].columns, LANE = 10;
  var said = document.getElementById("said"), from = 0, to = COLS;
  var views = data.map(function (d) {
    var figure = document.getElementById(d.id), svg = figure.querySelector("svg.picture");
    return {
      d: d, figure: figure, svg: svg, panes: svg.querySelectorAll("svg.pane"),
      axis: svg.querySelector(".axis"), labels: svg.querySelector(".labels"),
      x: +svg.querySelector(".pane").getAttribute("x"), y: +svg.querySelector(".pane").getAttribute("y"),
      w: +svg.querySelector(".pane").getAttribute("width"), h: +svg.querySelector(".pane").getAttribute("height"),
      rows: +svg.querySelector(".pane").getAttribute("viewBox").split(" ")[3], rank: 0, op: -1, mark: null
    };
  });
  function make(name, attributes, text) {
    var e = document.createElementNS(NS, name);
    for (var k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  function seconds(col) { return col / COLS * data[0].span_ns / 1e9; }
  function roundStep(v) {
    var p = Math.pow(10, Math.floor(Math.log10(v)));
    return v <= p ? p : v <= 2 * p ? 2 * p : v <= 5 * p ? 5 * p : 10 * p;
  }
  function op(v, rank, i) {
    var o = v.d.ranks[rank], k = 8 * i;
    return { x: o[k], w: o[k + 1], bin: o[k + 2], name: v.d.names[o[k + 3]], stage: o[k + 4], microbatch: o[k + 5], mhz: o[k + 6], watts: o[k + 7] / 10 };
  }
  function axis(v) {
    v.axis.textContent = "";
    var step = roundStep((seconds(to) - seconds(from)) / 10), decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    for (var k = Math.ceil(seconds(from) / step - 1e-9); k * step <= seconds(to) * (1 + 1e-12); k++) {
      var x = v.x + (k * step - seconds(from)) / (seconds(to) - seconds(from)) * v.w, y = v.y + v.h;
      v.axis.append(make("path", { d: "M" + x + " " + y + "v6", "class": "s-soft" }),
        make("text", { x: x, y: y + 21, "font-size": 12, "text-anchor": "middle", "class": "f-soft" }, (k * step).toFixed(decimals)));
    }
  }
  function labels(v) {
    v.labels.textContent = "";
    var high = v.h / v.d.ranks.length, scale = v.w / (to - from);
    if (high < 16) return;
    v.d.ranks.forEach(function (ops, rank) {
      for (var i = 0; i < ops.length / 8; i++) {
        var o = op(v, rank, i), text = String(o.microbatch);
        var a = Math.max(o.x, from), b = Math.min(o.x + o.w, to), wide = (b - a) * scale;
        if (wide < 9 * text.length + 4) continue;
        if (wide > 110) text = o.name + " " + text + ", " + o.mhz + " MHz";
        if (wide < 6.5 * text.length + 4) text = String(o.microbatch);
        v.labels.append(make("text", {
          x: v.x + ((a + b) / 2 - from) * scale, y: v.y + (rank + .5) * high + 4, "font-size": 11, "text-anchor": "middle", fill: v.d.on[o.bin]
        }, text));
      }
    });
  }
  var waiting = false;
  function draw() {
    waiting = false;
    views.forEach(function (v) {
      v.panes.forEach(function (p) { p.setAttribute("viewBox", from + " 0 " + (to - from) + " " + v.rows); });
      axis(v);
      if (v.d.ranks.length) labels(v);
    });
  }
  function show(a, b) {
    var least = Math.min(COLS, Math.max(20, COLS / 2000)), size = Math.min(COLS, Math.max(least, b - a));
    from = Math.min(Math.max(0, a), COLS - size);
    to = from + size;
    if (!waiting) { waiting = true; requestAnimationFrame(draw); }
  }
  function zoom(factor, at) { show(at - (at - from) * factor, at + (to - at) * factor); }
  function move(part) { var d = (to - from) * part; show(from + d, to + d); }
  function range() { said.textContent = "Showing " + seconds(from).toFixed(4) + " to " + seconds(to).toFixed(4) + " s of " + seconds(COLS).toFixed(4) + " s."; }
  function act(what) {
    var middle = (from + to) / 2;
    if (what === "in") zoom(.5, middle);
    else if (what === "out") zoom(2, middle);
    else if (what === "left") move(-.25);
    else if (what === "right") move(.25);
    else show(0, COLS);
    range();
  }
  function choose(v, rank, i, follow) {
    views.forEach(function (u) { if (u.mark) { u.mark.remove(); u.mark = null; } });
    v.rank = rank;
    v.op = i;
    var o = op(v, rank, i);
    v.mark = make("rect", { x: o.x, y: rank * LANE + 1, width: o.w, height: 8, "class": "chosen" });
    v.panes[v.panes.length - 1].append(v.mark);
    if (follow && (o.x < from || o.x + o.w > to)) { var half = (to - from) / 2; show(o.x + o.w / 2 - half, o.x + o.w / 2 + half); }
    said.textContent = v.figure.querySelector("figcaption").textContent.split(":")[0] + ": rank " + rank + ", " + o.name + " of microbatch " + o.microbatch +
      " on stage " + o.stage + ", " + (o.mhz ? o.mhz + " MHz, " : "") + (seconds(o.w) * 1e3).toFixed(2) + " ms from " + seconds(o.x).toFixed(4) + " s, " + o.watts.toFixed(0) + " W for each GPU";
  }
  function step(v, rank, by) {
    if (!v.d.ranks.length) return;
    rank = Math.min(Math.max(0, rank), v.d.ranks.length - 1);
    var n = v.d.ranks[rank].length / 8, i;
    if (!n) return;
    if (v.op < 0 || rank !== v.rank) { // the op there, or the first one in sight
      var x = v.op < 0 ? from : op(v, v.rank, v.op).x;
      for (i = 0; i < n - 1 && op(v, rank, i).x + op(v, rank, i).w <= x; i++);
    } else i = Math.min(Math.max(0, v.op + by), n - 1);
    choose(v, rank, i, true);
  }
  function find(v, event) {
    var box = v.svg.getBoundingClientRect(), scale = v.svg.viewBox.baseVal.width / box.width;
    var x = ((event.clientX - box.left) * scale - v.x) / v.w, y = ((event.clientY - box.top) * scale - v.y) / v.h;
    return { col: from + x * (to - from), rank: Math.floor(y * v.rows / LANE), inside: x >= 0 && x <= 1 && y >= 0 && y < 1, scale: scale };
  }
  views.forEach(function (v) {
    v.figure.addEventListener("keydown", function (e) {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      switch (e.key) {
        case "+": case "=": act("in"); break;
        case "-": case "_": act("out"); break;
        case "ArrowLeft": act("left"); break;
        case "ArrowRight": act("right"); break;
        case "Home": case "0": act("all"); break;
        case "ArrowUp": step(v, v.rank - (v.op < 0 ? 0 : 1), 0); break;
        case "ArrowDown": step(v, v.rank + (v.op < 0 ? 0 : 1), 0); break;
        case ",": step(v, v.rank, -1); break;
        case ".": step(v, v.rank, 1); break;
        default: return;
      }
      e.preventDefault();
    });
    var drag = null;
    v.svg.addEventListener("pointerdown", function (e) {
      if (e.button || !find(v, e).inside) return;
      drag = { x: e.clientX, from: from, to: to, scale: find(v, e).scale, moved: false };
      v.svg.setPointerCapture(e.pointerId);
    });
    v.svg.addEventListener("pointermove", function (e) {
      var f = find(v, e);
      if (drag) {
        if (Math.abs(e.clientX - drag.x) > 3) { drag.moved = true; v.svg.classList.add("moving"); }
        var d = (e.clientX - drag.x) * drag.scale / v.w * (drag.to - drag.from);
        if (drag.moved) show(drag.from - d, drag.to - d);
      } else if (f.inside && e.pointerType === "mouse" && v.d.ranks[f.rank]) {
        for (var i = 0, n = v.d.ranks[f.rank].length / 8; i < n; i++) {
          var o = op(v, f.rank, i);
          if (f.col >= o.x && f.col < o.x + o.w) {
            if (v.rank !== f.rank || v.op !== i || !v.mark) choose(v, f.rank, i, false);
            break;
          }
        }
      }
    });
    ["pointerup", "pointercancel"].forEach(function (name) {
      v.svg.addEventListener(name, function () { drag = null; v.svg.classList.remove("moving"); });
    });
    v.svg.addEventListener("wheel", function (e) {
      if (!e.ctrlKey) return;
      e.preventDefault();
      zoom(Math.pow(2, e.deltaY / 200), find(v, e).col);
    }, { passive: false });
  });
  var controls = document.getElementById("controls");
  controls.hidden = false;
  controls.addEventListener("click", function (e) { if (e.target.dataset.do) act(e.target.dataset.do); });
  window.addEventListener("beforeprint", function () { from = 0; to = COLS; draw(); });
  draw();
})();
