/* Signing in by a link, whose secret stands behind the # and is sent by nobody but this. */

import { byId, only } from "./dom.js";

const PREFIX = "#invite=";

// A link that is pasted where this page is open already changes the address and loads nothing
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith(PREFIX)) signInByLink();
});
if (location.hash.startsWith(PREFIX)) signInByLink();
else await goOnIfSignedIn();

function signInByLink() {
  const token = location.hash.slice(PREFIX.length);
  // Neither the history nor a copied address keeps it
  history.replaceState(null, "", location.pathname + location.search);
  byId("working").hidden = false;
  byId("by-key").hidden = true;
  const form = byId("by-link", HTMLFormElement);
  only(form, "[name=invite]", HTMLInputElement).value = token;
  form.submit();
}

/* A strict cookie does not come along when a link of somebody else's page was followed; now it does. */
async function goOnIfSignedIn() {
  const next = new URLSearchParams(location.search).get("next");
  const present = document.getElementById("present");
  if (next === null || present !== null || document.getElementById("wrong") !== null) return;
  if (!next.startsWith("/") || next.startsWith("//")) return;
  try {
    const answer = await fetch("/login", { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const onward = page.getElementById("present");
    if (onward !== null)
      location.replace(only(document, "input[name=next]", HTMLInputElement).value);
  } catch {
    // Whoever cannot be asked shows in the form
  }
}
