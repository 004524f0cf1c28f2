/* The reference of the interface: Redoc in the colours and letters of all pages. */

import { byId } from "./dom.js";

const OPTIONS = {
  hideDownloadButton: true,
  nativeScrollbars: true,
  pathInMiddlePanel: true,
  expandResponses: "200,201",
};

/** @type {{ init: (url: string, options: object, place: HTMLElement) => void }} */
const redoc = Reflect.get(window, "Redoc");
const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const style = getComputedStyle(document.documentElement);
  // Redoc reckons with colours, and cannot with the names of ours
  const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const [ink, muted, accent] = ["--ink", "--muted", "--accent"].map(value);
  const [surface, sunken, rule] = ["--surface", "--sunken", "--rule"].map(value);
  const [good, mark, danger] = ["--good", "--mark", "--danger"].map(value);
  const plain = (/** @type {string} */ colour) => ({ main: colour, light: colour, dark: colour });
  const response = (/** @type {string} */ color) => ({ color, tabTextColor: color });
  return {
    colors: {
      primary: { ...plain(accent), contrastText: value("--on-accent") },
      success: plain(good),
      warning: plain(mark),
      error: plain(danger),
      gray: { 50: sunken, 100: rule },
      text: { primary: ink, secondary: muted },
      border: { dark: rule, light: rule },
      responses: {
        success: response(good),
        error: response(danger),
        redirect: response(mark),
        info: response(accent),
      },
      http: {
        get: value("--accent"),
        post: value("--good"),
        put: value("--mark"),
        patch: value("--mark"),
        delete: value("--danger"),
      },
    },
    schema: {
      linesColor: value("--rule-strong"),
      typeNameColor: muted,
      requireLabelColor: danger,
      nestedBackground: sunken,
      arrow: { color: muted },
    },
    typography: {
      fontSize: "16px",
      fontFamily: value("--sans"),
      smoothing: "auto",
      headings: { fontFamily: value("--serif"), fontWeight: "600", lineHeight: "1.25" },
      code: {
        fontSize: "14px",
        fontFamily: value("--mono"),
        color: ink,
        backgroundColor: sunken,
        wrap: true,
      },
      links: { color: accent, visited: accent, hover: value("--accent-strong") },
    },
    sidebar: {
      width: "280px",
      backgroundColor: surface,
      textColor: ink,
      activeTextColor: accent,
      groupItems: { activeBackgroundColor: sunken, textTransform: "none" },
      level1Items: { activeBackgroundColor: sunken },
      arrow: { color: muted },
    },
    rightPanel: {
      backgroundColor: sunken,
      textColor: ink,
      servers: {
        overlay: { backgroundColor: surface, textColor: ink },
        url: { backgroundColor: sunken },
      },
    },
    codeBlock: { backgroundColor: surface },
    fab: { backgroundColor: surface, color: accent },
  };
}

const place = byId("reference");
const { nonce } = place.dataset;
redoc.init("/openapi.json", { ...OPTIONS, nonce, theme: theme() }, place);
// It takes seconds to make it: done again only where somebody changes from day to night
dark.addEventListener("change", () => location.reload());
