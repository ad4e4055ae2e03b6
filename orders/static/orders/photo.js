// The photo page: a look at the photo before it is sent, the frame's place, and how far a big file has come.
(() => {
  "use strict";
  const form = document.querySelector("[data-photo-form]");
  if (!form) return;
  const find = (selector) => form.querySelector(selector);
  const input = find("#photo"), drop = find("[data-drop]"), preview = find("[data-preview]"), image = preview.querySelector("img");
  const slider = find("#crop"), row = find("[data-slider]"), text = find("[data-size-text]"), none = find("[data-no-preview]");
  const fault = find("#photo-fault"), upload = find("[data-upload]"), bar = find("#upload"), label = upload.querySelector("label");
  const LIMIT = 15 * 1024 * 1024, BIG = 1e6, mb = (bytes) => (bytes / 1e6).toFixed(1);

  function say(message) {
    fault.textContent = message;
    fault.hidden = !message;
    input.closest(".field").classList.toggle("wrong", Boolean(message));
    input.removeAttribute("aria-invalid");
    if (message) input.setAttribute("aria-invalid", "true");
  }
  // Only a picture taller than 9:16 has room above or below the frame.
  function frame(width, height) {
    const tall = width * 16 < height * 9;
    row.hidden = slider.disabled = !tall;
    place(tall ? slider.value : 50);
    text.textContent = `${width} × ${height} pixels. This is the part we use.`;
  }
  const place = (value) => { image.style.objectPosition = `50% ${value}%`; };

  function look() {
    const file = input.files[0];
    say("");
    none.hidden = true;
    if (!file) return;
    const kept = find("#photo-kept");
    if (kept) kept.hidden = true;
    if (file.size > LIMIT) say(`Choose a photo smaller than 15 MB. This one is ${Math.ceil(file.size / 1024 / 1024 * 10) / 10} MB`);
    const address = URL.createObjectURL(file), probe = new Image();
    probe.onload = () => {
      image.src = address;
      preview.hidden = false;
      slider.value = 25;
      frame(probe.naturalWidth, probe.naturalHeight);
    };
    probe.onerror = () => {
      URL.revokeObjectURL(address);
      preview.hidden = row.hidden = slider.disabled = true;
      none.hidden = !(file.size && file.size <= LIMIT);
    };
    probe.src = address;
  }

  function send(event) {
    const file = input.files[0];
    if (!file || file.size < BIG) return;
    event.preventDefault();
    if (form.dataset.sent) return;
    const button = find("button[data-busy]"), words = button.textContent, request = new XMLHttpRequest();
    const busy = (on) => {
      if (on) form.dataset.sent = "1"; else delete form.dataset.sent;
      upload.hidden = !on;
      button.textContent = on ? button.dataset.busy : words;
      button.toggleAttribute("aria-disabled", false);
      if (on) button.setAttribute("aria-disabled", "true");
    };
    const stopped = (message) => { busy(false); button.textContent = "Try again"; say(message); fault.scrollIntoView({ block: "center" }); };
    request.open("POST", form.action);
    request.upload.onprogress = ({ loaded, total }) => {
      bar.value = (100 * loaded) / total;
      label.textContent = `Uploading ${mb(loaded)} of ${mb(total)} MB`;
    };
    request.onload = () => {
      if (request.status >= 500) return stopped("The upload did not work. Your photo is still chosen here");
      if (request.responseURL.split("#")[0] !== form.action.split("#")[0]) return location.assign(request.responseURL);
      document.open();
      document.write(request.responseText);
      document.close();
    };
    request.onerror = () => stopped("The upload stopped. Your photo is still chosen here");
    request.onabort = () => stopped("You stopped the upload. Your photo is still chosen here");
    find("[data-stop]").onclick = () => request.abort();
    say("");
    busy(true);
    request.send(new FormData(form));
  }

  input.addEventListener("change", look);
  slider.addEventListener("input", () => place(slider.value));
  form.addEventListener("submit", send);
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) { input.files = event.dataTransfer.files; look(); }
    });
  }
  // Coming back to a kept photo: the whole of it, so that the slider has something to move.
  if (image.dataset.whole) {
    const [width, height] = image.dataset.size.split("x").map(Number);
    if (width * 16 < height * 9) image.src = image.dataset.whole;
    frame(width, height);
  }
  if (input.files.length) look();
})();
