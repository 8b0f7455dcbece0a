/** Red, green, blue, each 0 to 255. */
export type Color = readonly [number, number, number]

export const white: Color = [255, 255, 255]
export const black: Color = [0, 0, 0]

/** `#rgb` or `#rrggbb`, with or without an opacity, which is ignored; undefined for anything else. */
export function readColor(written: string): Color | undefined {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])[0-9a-f]?$/i.exec(written)
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})(?:[0-9a-f]{2})?$/i.exec(written)
  const digits = short?.slice(1).map((digit) => digit + digit) ?? long?.slice(1)
  if (digits === undefined) return undefined
  const [r = 0, g = 0, b = 0] = digits.map((pair) => Number.parseInt(pair, 16))
  return [r, g, b]
}

export const writeColor = (color: Color): string =>
  `#${color.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`

/** `share` is that of the second, 0 to 1. */
export const mix = (one: Color, other: Color, share: number): Color => [
  one[0] + (other[0] - one[0]) * share,
  one[1] + (other[1] - one[1]) * share,
  one[2] + (other[2] - one[2]) * share,
]

function luminance(color: Color): number {
  const [r = 0, g = 0, b = 0] = color.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** The contrast of WCAG 2.2: 1 to 21. */
export function contrast(one: Color, other: Color): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (lighter + 0.05) / (darker + 0.05)
}

/** The contrast that WCAG AA requires for text, and a little more since browsers round. */
const enough = 4.6

/** The color, moved away from the background until text in it is readable there. */
export function readable(color: Color, background: Color): Color {
  const towards = contrast(white, background) > contrast(black, background) ? white : black
  for (let share = 0; share < 1; share += 0.05) {
    const moved = mix(color, towards, share)
    if (contrast(moved, background) >= enough) return moved
  }
  return towards
}
