// What every page gains from a script: nothing here is needed to buy, wait or download.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function localTimes() {
    for (const time of all("time[data-local]")) {
      const at = new Date(time.dateTime);
      if (!isNaN(at)) time.textContent = at.toLocaleString(undefined, time.dataset.local === "clock" ? { timeStyle: "short" } : { dateStyle: "long", timeStyle: "short" });
      time.removeAttribute("data-local");
    }
  }

  // A sample plays in its card: the picture gives way to the clip, a second press pauses, leaving the view pauses.
  const leaves = "IntersectionObserver" in window && new IntersectionObserver((seen) => {
    for (const entry of seen) if (!entry.isIntersecting) entry.target.pause();
  });
  function play(link) {
    const still = link.parentElement.querySelector(".still"), image = still.querySelector("img");
    let video = still.querySelector("video");
    if (video) return video.paused ? video.play() : video.pause();
    video = document.createElement("video");
    Object.assign(video, { muted: true, playsInline: true, loop: true, preload: "none", src: link.href });
    if (image) video.poster = image.currentSrc || image.src;
    const name = link.querySelector(".hide"), sign = link.querySelector("[aria-hidden]"), words = name.textContent;
    const show = () => { sign.textContent = video.paused ? "▶" : "❚❚"; name.textContent = video.paused ? words : words.replace("Play", "Pause"); };
    for (const event of ["play", "pause"]) video.addEventListener(event, show);
    video.addEventListener("error", () => { if (image) video.replaceWith(image); link.hidden = true; });
    still.replaceChildren(video);
    if (leaves) leaves.observe(video);
    return video.play();
  }

  // The first press counts; the button says so, and is itself again when the page comes back from the browser's memory.
  document.addEventListener("submit", (event) => {
    const form = event.target, button = form.querySelector("button[data-busy]");
    if (event.defaultPrevented || !button) return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "1";
    button.dataset.words = button.textContent;
    button.textContent = button.dataset.busy;
    button.setAttribute("aria-disabled", "true");
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of all("form[data-sent]")) {
      delete form.dataset.sent;
      const button = form.querySelector("button[data-words]");
      button.textContent = button.dataset.words;
      button.removeAttribute("aria-disabled");
    }
  });

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-play]"), copy = event.target.closest("[data-copy]");
    if (link) { event.preventDefault(); Promise.resolve(play(link)).catch(() => {}); }
    if (copy) {
      const said = document.querySelector("[data-copied]");
      try { await navigator.clipboard.writeText(copy.dataset.copy); said.textContent = "Link copied"; }
      catch { said.textContent = "Copy it from the address bar"; }
    }
  });

  for (const extra of all("[data-script]")) extra.hidden = extra.hasAttribute("data-copy") && !navigator.clipboard;
  const faults = document.getElementById("faults");
  if (faults) faults.focus();
  localTimes();
  document.addEventListener("htmx:afterSettle", localTimes);
})();
