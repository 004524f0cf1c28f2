// What the pages' scripts speak of: the service's answers by short names, and what exists in the
// browser only. `api.d.ts` beside this file is made from openapi/openapi.json and not kept in git.

import type { components } from "./api.js";

type Schemas = components["schemas"];

declare global {
  type Comparison = Schemas["TaskComparison"];
  type Key = Schemas["KeyOut"];
  type DrawAnswer = Schemas["NextAnswer"];
  type Draw = DrawAnswer["draws"][number];
  type Item = Schemas["DrawnItem"];
  type ObserveAnswer = Schemas["ObserveAnswer"];
  type Pool = Schemas["PoolOut"];
  type ProblemBody = Schemas["Problem"];
  type Scale = Schemas["Scale"];
  type AnySession = Schemas["Session"];
  /** A session that measures a risk or a difference: it has an interval. */
  type Session = AnySession & {
    policy: string;
    estimate: number;
    lower: number;
    upper: number;
    width: number;
    scale: Scale;
    score: Schemas["ScoreInterval"];
  };
  type Task = Schemas["TaskAnswer"];
  type TrajectoryPoint = Schemas["TrajectoryPoint"];

  /** An event of a session's stream. */
  interface News {
    session: AnySession;
    points: TrajectoryPoint[];
    reset: boolean;
  }

  /** What a judge says of an item: one of these. */
  interface Judgement {
    loss?: number;
    losses?: { left: number; right: number } | number[] | Record<string, number | null>;
    preference?: "left" | "tie" | "both_bad" | "right";
    grade?: number;
    label?: number;
    unjudgeable?: string;
    /** Which time it is that a panel judges the item. */
    turn?: number;
    /** What is added to it; an empty one erases what was. */
    comment?: string;
  }

  /** A judgement that is not with the service yet. */
  interface Entry {
    kind: "observe" | "amend" | "comment";
    round: number;
    said: Judgement;
    worker: string;
    tried: boolean;
    /** It is not sent before. */
    until: number;
  }

  interface Buttons {
    kind: "buttons";
    options: {
      keys: string[];
      name: string;
      said: Judgement;
      /** Whether it is the best or the worst end of the scale. */
      end?: "best" | "worst";
      /** The id of the words that say when it is right. */
      help?: string;
    }[];
    asked: boolean;
    /** Which end of levels is better. */
    better?: Task["better"];
  }
  interface Field {
    kind: "field";
    options: { name: string; said: Judgement }[] | null;
    classes: number | null;
    asked: boolean;
  }
  /** A line of a judgement: a loss by the values of its score, or a preference by its grades. */
  interface FormLine {
    /** What a judgement calls it. */
    key: string | number;
    name: string;
    low: number;
    high: number;
    step: number;
    /** Whether the values printed are a score's of which higher is better. */
    turned: boolean;
    ends: [string, string];
    /** The words of 0 and of 1, where there are no other values. */
    choices: [string, string] | null;
  }
  interface Lines {
    kind: "lines";
    lines: FormLine[];
    takes: "loss" | "losses" | "shown" | "metrics" | "preference";
    /** What can be said beside them. */
    options?: Buttons["options"];
    asked: boolean;
  }
  /** What can be said of an item. */
  type Form = Buttons | Field | Lines;

  /** What the line to the service tells the page. */
  type LinkEvent =
    | { what: "draws" | "state" | "line" | "released" }
    | { what: "sent"; entry: Entry; answer: ObserveAnswer }
    | { what: "refused"; entry: Entry; problem: Refusal };
  interface Refusal {
    code: string;
    detail: string;
  }

  /** The members of an item's payload that is an object. */
  type Payload = Record<string, unknown>;

  type Line = "up" | "down" | "signed-out" | "forbidden" | "gone";

  /** What an element is filled with: nodes and texts, in arrays if you like. */
  type Child = Node | string | number | boolean | null | undefined | Child[];

  /** Attributes of an element; those that are null, undefined or false are left out. */
  interface Props {
    on?: { [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void };
    dataset?: Record<string, string>;
    [attribute: string]: unknown;
  }
  type ElementOf<Tag extends string> = Tag extends keyof HTMLElementTagNameMap
    ? HTMLElementTagNameMap[Tag]
    : HTMLElement;

  interface RequestOptions {
    keepalive?: boolean;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    retry?: number;
    raw?: boolean;
    wait?: number;
  }

  /** Where browsers keep what survives a reload. */
  type StorageName = "localStorage" | "sessionStorage";
}
