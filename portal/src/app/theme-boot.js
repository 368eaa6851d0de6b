// Runs before the first paint. The choice is one of light, dark and system; see theme.ts.
(() => {
  var choice = "system";
  try {
    choice = localStorage.getItem("berth:theme") || "system";
  } catch {}
  var dark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
