/* What was judged: a table that is asked for anew when another filter is chosen. */

import { byId } from "./dom.js";
import "./forms.js";
import { watch } from "./silence.js";

const form = byId("filter", HTMLFormElement);
for (const select of form.querySelectorAll("select"))
  select.addEventListener("change", () => {
    // Another column has other values, of which one is still to be typed
    if (select.id === "column") byId("value").setAttribute("list", `values-${select.value}`);
    else form.requestSubmit();
  });
watch();
performance.mark("usable");
