import { store } from "@/lib/store";

export const paletteOpen = store(false);
export const openPalette = () => paletteOpen.set(true);
