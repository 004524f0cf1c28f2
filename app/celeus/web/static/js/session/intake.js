/* How the file of a session's pool was read, on the page of the session. */

import { byId, fill, given } from "../dom.js";
import { intakeOf } from "../intake.js";

fill(byId("intake"), intakeOf(given("opened").intake));
