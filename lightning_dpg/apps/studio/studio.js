"use strict";
// Forms and links work without this file. It follows the slider, and loads progress again.

const form = document.getElementById("plan");
if (form) {
  // Not form.dataset: a field of that name hides it.
  const stops = JSON.parse(form.getAttribute("data-stops"));
  const slider = document.getElementById("slider");
  const number = document.getElementById("epsilon");
  const place = document.getElementById("meaning");
  let asked = 0;
  let timer = 0;

  const nearest = (value) => stops.reduce(
    (best, stop, i) => Math.abs(Math.log(stop / value)) < Math.abs(Math.log(stops[best] / value)) ? i : best, 0);

  const follow = () => {
    slider.value = nearest(Number(number.value) || 1);
    slider.setAttribute("aria-valuetext", `epsilon ${number.value}`);
  };

  const show = async () => {
    const mine = ++asked;
    const sent = new URLSearchParams(new FormData(form));
    sent.set("go", "look");
    const answer = await fetch(form.action, { method: "POST", body: sent }).catch(() => null); // the page is left
    const shown = new DOMParser().parseFromString(answer ? await answer.text() : "", "text/html");
    if (mine !== asked || !answer?.ok) return;
    const problem = shown.querySelector("[role=alert]");
    place.replaceChildren(...(problem ? [problem] : []), ...shown.getElementById("meaning").childNodes);
  };

  const later = () => { clearTimeout(timer); timer = setTimeout(show, 250); };

  // A button stays where it is while it is pressed.
  form.addEventListener("pointerdown", (event) => { if (event.target.closest("button")) { clearTimeout(timer); ++asked; } });
  slider.hidden = false;
  follow();
  slider.addEventListener("input", () => { number.value = stops[slider.value]; follow(); later(); });
  form.addEventListener("input", (event) => { if (event.target !== slider) { follow(); if (!event.target.closest("[data-still]")) later(); } });
}

// One box at most is loaded again, until the state of its run changes; then the page is.
const box = document.querySelector("[data-poll]");
if (box && box.dataset.state === "running") {
  const poll = async () => {
    try {
      const answer = await fetch(box.dataset.poll);
      const text = await answer.text();
      if (answer.headers.get("X-State") !== "running") { location.reload(); return; }
      if (box.id === "progress") box.innerHTML = text;
    } catch { /* the studio has ended: its page stays */ }
    setTimeout(poll, 1000);
  };
  setTimeout(poll, 1000);
}
