/** The DN of the person whose page this is, in a form that a header can hold; undefined until it is known. */
let owner: string | undefined

/** The first one who is told stays it, for as long as the page is there. */
export function noteOwner(dn: string): void {
  owner ??= encodeURIComponent(dn)
}

/** With it, the gateway refuses a call once somebody else has signed in, in another tab. */
export const ownerHeader = (): Readonly<Record<string, string>> => (owner === undefined ? {} : { 'x-page-of': owner })

let anew: Promise<never> | undefined

/** What is on the page is somebody else's now. Never resolves, since the page goes, once, however many calls find it out. */
export function startAnew(): Promise<never> {
  anew ??= new Promise(() => window.location.reload())
  return anew
}
