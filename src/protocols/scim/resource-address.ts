const plainId = /^[\w:-]+$/

/** `base` is the address of the gateway. Most ids need no encoding, and a page has hundreds. */
export const resourceAddress = (base: string, type: 'User' | 'Group', id: string): string =>
  `${base}/${type}s/${plainId.test(id) ? id : encodeURIComponent(id)}`
