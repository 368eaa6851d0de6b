// What a queue uses of its quota, what it borrows and lends. Pure.

export interface Share {
  used: number;
  quota: number;
  /** What it is due now; null where nothing is known. */
  fair?: number | null | undefined;
  /** Of its quota, what others use. */
  lent?: number | undefined;
}

export interface ShareParts {
  own: number;
  borrowed: number;
  free: number;
  lent: number;
  /** What the whole width stands for. */
  scale: number;
}

export function shareParts(share: Share, most?: number | undefined): ShareParts {
  const own = Math.min(share.used, share.quota);
  const borrowed = Math.max(0, share.used - share.quota);
  const lent = Math.min(share.lent ?? 0, Math.max(0, share.quota - own));
  const free = Math.max(0, share.quota - own - lent);
  const scale = Math.max(most ?? 0, share.used, share.quota, share.fair ?? 0, 1);
  return { own, borrowed, free, lent, scale };
}

export function shareWords(share: Share, unit: string): string {
  const { borrowed, lent } = shareParts(share);
  const parts = [
    share.quota > 0
      ? `${number(share.used)} of ${number(share.quota)} ${unit}`
      : `${number(share.used)} ${unit}, no quota of its own`,
  ];
  if (borrowed > 0) parts.push(`borrows ${number(borrowed)}`);
  if (lent > 0) parts.push(`lends ${number(lent)}`);
  if (share.fair !== null && share.fair !== undefined)
    parts.push(`fair share ${number(share.fair)}`);
  return parts.join(", ");
}

export function number(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}
