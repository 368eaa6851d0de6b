import { useState } from "react";
import { asApiError } from "@/api/error";
import { save } from "@/api/save";
import { Button, type ButtonProps, toast } from "@/design";

/** Saves what the server has at an address, and says so where that fails. */
export function SaveButton({ at, file, ...rest }: ButtonProps & { at: string; file: string }) {
  const [busy, setBusy] = useState(false);
  return (
    <Button
      {...rest}
      busy={busy}
      onClick={() => {
        setBusy(true);
        void save(at, file)
          .catch((e) => toast(`Not saved: ${asApiError(e).message}`, { tone: "bad" }))
          .finally(() => setBusy(false));
      }}
    />
  );
}
