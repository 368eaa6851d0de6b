/** A ref for the chosen one of a row that scrolls: it is seen from the first moment on. */
export function intoView(element: HTMLElement | null): void {
  element?.scrollIntoView({ inline: "center", block: "nearest" });
}
