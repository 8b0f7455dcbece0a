/** The colors of a page. Each is `#rgb` or `#rrggbb`. */
export interface Theme {
  readonly main: string
  /** Of buttons under the pointer; made from the main one when absent. */
  readonly dark?: string | undefined
  readonly error?: string
}

/** How the pages of a host look: like its portal. */
export interface PageLook {
  /** The name of the product, as the portal's header shows it. */
  readonly name?: string
  readonly theme?: Theme
  /** A path of this host, or a `data:` address of an image. */
  readonly logo?: string
}

/** Throws an Error for anything but a color, since it becomes part of a style sheet. */
export function parseColor(written: string): string {
  if (!/^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(written)) throw new Error(`must be #rgb or #rrggbb, not "${written}"`)
  return written
}
