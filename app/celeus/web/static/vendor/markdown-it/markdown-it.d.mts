export { default } from "markdown-it";
export type { StateBlock, StateCore, StateInline } from "markdown-it";
