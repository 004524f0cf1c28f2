/* What every page does: mark where one is, and sign out. */

import { api } from "./api.js";

for (const link of document.querySelectorAll(".nav a")) {
  const path = link.getAttribute("href") ?? "";
  const here = path === "/" ? location.pathname === "/" : location.pathname.startsWith(path);
  if (here) link.setAttribute("aria-current", "page");
}

const signOut = /** @type {HTMLButtonElement | null} */ (document.getElementById("sign-out"));
signOut?.addEventListener("click", async () => {
  signOut.disabled = true;
  try {
    await api("POST", "/logout");
  } catch {
    // Signed out already, or the service is away: the page to sign in tells
  }
  location.assign("/login");
});
