import "../../design/base.css";
import { benchAll, benchAppend, benchGantt, benchHeat, benchSearch } from "./bench";

declare global {
  interface Window {
    berthBench?: Record<string, unknown>;
  }
}

// For a script that drives the browser: `page.evaluate(() => window.berthBench.benchAll())`.
window.berthBench = { benchAll, benchAppend, benchGantt, benchHeat, benchSearch };
