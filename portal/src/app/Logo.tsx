/** Ships at a quay: three berths. */
export function Logo({ size = 20 }: { size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      aria-hidden="true"
      className="shrink-0 text-accent"
    >
      <rect width="24" height="24" rx="6" fill="currentColor" />
      <path
        d="M5.5 7h3.4v10H5.5zM15.1 7h3.4v10h-3.4zM10.3 11h3.4v6h-3.4z"
        className="fill-accent-text"
      />
    </svg>
  );
}
