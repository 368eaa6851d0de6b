import { useState } from "react";
import { Button, type ButtonProps } from "@/design";
import { saveOrSay } from "./saving";

/** Saves what the server has at an address, and says so where that fails. */
export function SaveButton({ at, file, ...rest }: ButtonProps & { at: string; file: string }) {
  const [busy, setBusy] = useState(false);
  return (
    <Button
      {...rest}
      busy={busy}
      onClick={() => {
        setBusy(true);
        void saveOrSay(at, file).finally(() => setBusy(false));
      }}
    />
  );
}
