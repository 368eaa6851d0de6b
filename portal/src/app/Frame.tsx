import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { asApiError } from "@/api/error";
import { start } from "@/api/live";
import { sessionQuery, useMay, useSignOut } from "@/api/session";
import { toast } from "@/design";
import { useStored } from "@/lib/stored";
import { useActions, useKeyboard } from "./keyboard";
import { NAV } from "./nav";
import { Palette } from "./Palette";
import { openPalette } from "./palette-state";
import { BottomBar, Rail } from "./Rail";
import { useGo } from "./routes";
import { openShortcuts, Shortcuts } from "./Shortcuts";
import { TopBar } from "./TopBar";
import { flipTheme } from "./theme";

/** What stands around every page. It is there once, whichever page is shown. */
export function Frame() {
  const [railOpen, setRailOpen] = useStored("rail", true);
  const client = useQueryClient();
  useEffect(
    () => start(client, { onTrouble: () => void client.invalidateQueries(sessionQuery) }),
    [client],
  );
  useKeyboard();
  useFrameActions(() => setRailOpen(!railOpen));
  useFocusOnPage();

  return (
    <div className="flex h-full flex-col bg-bg">
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on this page, and moves the focus there */}
      <a
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.querySelector<HTMLElement>("main h1")?.focus();
        }}
        className="fixed top-1 left-1 z-50 not-focus:sr-only rounded-md bg-raised px-3 py-2 shadow-float"
      >
        Skip to the page
      </a>
      <div className="flex min-h-0 flex-1">
        <Rail open={railOpen} onToggle={() => setRailOpen(!railOpen)} />
        <div className="flex min-w-0 flex-1 flex-col">
          <TopBar />
          <main id="main" className="relative min-h-0 flex-1 overflow-hidden">
            <Outlet />
          </main>
        </div>
      </div>
      <BottomBar />
      <Palette />
      <Shortcuts />
    </div>
  );
}

function useFrameActions(toggleRail: () => void) {
  const go = useGo();
  const submit = useMay("JobsSubmit");
  const signOut = useSignOut();
  useActions([
    ...NAV.map((n) => ({
      id: `go:${n.to}`,
      group: "Go to",
      label: n.label,
      keys: n.keys,
      run: () => go(n.to),
    })),
    {
      id: "new",
      group: "Do",
      label: "New job",
      keys: "n",
      denied: submit.reason,
      run: () => go("/new"),
    },
    { id: "palette", group: "Do", label: "Search or run", keys: "mod+k", run: openPalette },
    { id: "theme", group: "Do", label: "Switch between light and dark", run: flipTheme },
    { id: "rail", group: "Do", label: "Open or collapse the rail", keys: "[", run: toggleRail },
    { id: "keys", group: "Do", label: "Keyboard shortcuts", keys: "?", run: openShortcuts },
    {
      id: "sign-out",
      group: "Do",
      label: "Sign out",
      run: () =>
        void signOut().catch((e) =>
          toast(`Not signed out: ${asApiError(e).message}`, { tone: "bad" }),
        ),
    },
  ]);
}

/** After a change of page the focus is on its heading, so that it is read out and Tab goes on there. */
function useFocusOnPage() {
  const path = useLocation({ select: (l) => l.pathname });
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    const was = document.querySelector("main h1");
    let tries = 60;
    let frame = 0;
    const look = () => {
      const h1 = document.querySelector<HTMLElement>("main h1");
      tries -= 1;
      if (h1 && (h1 !== was || tries < 40)) {
        if (!h1.hasAttribute("tabindex")) h1.tabIndex = -1;
        h1.focus({ preventScroll: true });
      } else if (tries > 0) frame = requestAnimationFrame(look);
    };
    frame = requestAnimationFrame(look);
    return () => cancelAnimationFrame(frame);
  }, [path]);
}
