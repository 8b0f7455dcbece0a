const plainId = /^[\w:-]+$/

/** Where a resource stands; `base` is the gateway's own address. Most ids need no encoding, and a page names hundreds. */
export const resourceAddress = (base: string, type: 'User' | 'Group', id: string): string =>
  `${base}/${type}s/${plainId.test(id) ? id : encodeURIComponent(id)}`
