// The order page: what to say when the server is away, a video that will not play, and sharing the file itself.
(() => {
  "use strict";
  const offline = document.getElementById("offline");
  const away = (on) => () => { offline.hidden = !on; };
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) document.addEventListener(name, away(true));
  document.addEventListener("htmx:afterOnLoad", (event) => { if (event.detail.xhr.status < 400) offline.hidden = true; });
  if (document.querySelector("[data-poll]")) {
    addEventListener("offline", away(true));
    addEventListener("online", away(false));
  }

  function watch() {
    for (const video of document.querySelectorAll("[data-video]:not([data-watched])")) {
      video.dataset.watched = "1";
      const broken = () => { video.closest("figure").parentElement.querySelector("[data-broken]").hidden = false; };
      video.addEventListener("error", broken);
      video.querySelector("source").addEventListener("error", broken);
    }
    const button = document.querySelector("[data-share]:not([data-watched])");
    if (!button || !navigator.canShare || (navigator.connection && navigator.connection.saveData)) return;
    button.dataset.watched = "1";
    const ready = () => prepare(button);
    "requestIdleCallback" in window ? requestIdleCallback(ready, { timeout: 4000 }) : setTimeout(ready, 1500);
  }

  // The file must be there before the press: between press and sheet nothing may be waited for.
  async function prepare(button) {
    const answer = await fetch(button.dataset.share).catch(() => null);
    if (!answer || !answer.ok) return;
    const file = new File([await answer.blob()], button.dataset.name, { type: "video/mp4" });
    if (!navigator.canShare({ files: [file] })) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      navigator.share({ files: [file] }).catch((error) => { if (error.name !== "AbortError") button.hidden = true; });
    });
  }

  watch();
  document.addEventListener("htmx:afterSettle", watch);
})();
