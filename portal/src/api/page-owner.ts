/** The DN of the page's user, encoded for a header; undefined until it is known. */
let owner: string | undefined

/** The first user stays the owner for the lifetime of the page. */
export function noteOwner(dn: string): void {
  owner ??= encodeURIComponent(dn)
}

/** With it, the gateway rejects a call after another user has signed in, in another tab. */
export const ownerHeader = (): Readonly<Record<string, string>> => (owner === undefined ? {} : { 'x-page-of': owner })

let reloading: Promise<never> | undefined

/** The page belongs to another user now. Never resolves, since the page reloads, once for any number of calls. */
export function reloadPage(): Promise<never> {
  reloading ??= new Promise(() => window.location.reload())
  return reloading
}
