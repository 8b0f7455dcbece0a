/** Paths of 24 by 24 units, drawn as lines. */
const paths = {
  home: 'M4 11 12 4l8 7M6 9.5V20h4v-6h4v6h4V9.5',
  key: 'M8 19.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM11 12.5 19.5 4M15.5 8l3 3',
  list: 'M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 20.5c.6-4 3.6-6 7.5-6s6.9 2 7.5 6',
  people:
    'M9 12a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 19.5c.5-3.3 3-5 6.5-5s6 1.7 6.5 5M16 5.3a3.5 3.5 0 0 1 0 6.4M18 15c2 .6 3.2 2.1 3.5 4.5',
  star: 'm12 3.5 2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9-4.3-4.1 5.9-.8Z',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM16 16l4.5 4.5',
  cart: 'M3 4h2.5l2 11h10l2-8H6.3M9 19.5h.01M16 19.5h.01',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7.5V12l3 2',
  warning: 'M12 4 2.5 20h19ZM12 10v4.5M12 17.3h.01',
  close: 'M6 6l12 12M18 6 6 18',
  sun: 'M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z',
  screen: 'M3.5 5h17v11h-17ZM9 20h6M12 16v4',
  globe: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18',
  exit: 'M14 4H5v16h9M10 12h11M17.5 8.5 21 12l-3.5 3.5',
  offline: 'M3 3l18 18M5 12.5a10 10 0 0 1 4-2.4M19 12.5a10 10 0 0 0-5.5-2.8M8.5 16a5 5 0 0 1 6-.5M12 19.5h.01',
  folder: 'M3.5 6h6l2 2.5h9V19h-17Z',
  external: 'M14 4h6v6M20 4l-9 9M17 14v6H4V7h6',
  plus: 'M12 5v14M5 12h14',
  trash: 'M4 7h16M9.5 7V4.5h5V7M6.5 7l1 13h9l1-13M10 11v5M14 11v5',
  arrow: 'M5 12h14M13.5 6.5 19 12l-5.5 5.5',
  back: 'M19 12H5M10.5 6.5 5 12l5.5 5.5',
  dot: 'M12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  chevron: 'm9 6 6 6-6 6',
  copy: 'M9 9h11v11H9ZM15 9V4H4v11h5',
  download: 'M12 4v11M7 10.5l5 5 5-5M4.5 20h15',
  refresh: 'M20 12a8 8 0 1 1-2.4-5.7M20 4v4.5h-4.5',
  shield: 'M12 3.5 5 6v5.5c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6Z',
  chart: 'M4 20h16M7 16v-4M12 16V7M17 16v-6',
  bell: 'M6 10a6 6 0 0 1 12 0c0 5 2 6 2 7H4c0-1 2-2 2-7ZM10 20.5h4',
  mail: 'M3.5 6h17v12h-17ZM4 7l8 6 8-6',
  phone: 'M8 3.5h8v17H8ZM11 17.5h2',
  token: 'M3.5 7h17v10h-17ZM7.5 12h.01M12 12h.01M16.5 12h.01',
  card: 'M3.5 5.5h17v13h-17ZM8.5 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM5.5 15.5c.4-1.3 1.4-2 3-2s2.6.7 3 2M14.5 10h3.5M14.5 14h3.5',
  flow: 'M4 4h6v5H4ZM14 15h6v5h-6ZM7 9v8.5h7',
  server: 'M4 4h16v7H4ZM4 13h16v7H4ZM8 7.5h.01M8 16.5h.01',
  keyboard: 'M3 7h18v11H3ZM7 10.5h.01M10.5 10.5h.01M14 10.5h.01M17 10.5h.01M8 14.5h8',
  code: 'm8 7-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14',
  skip: 'm6 6 8 6-8 6ZM18 6v12',
} as const

export type IconName = keyof typeof paths

interface IconProps {
  readonly name: IconName
  readonly size?: number
  readonly filled?: boolean
}

/** Hidden from screen readers, so it must not be the only carrier of information. */
export function Icon({ name, size = 20, filled = false }: IconProps) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill={filled ? 'currentColor' : 'none'}
      stroke="currentColor"
      strokeWidth={1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  )
}
