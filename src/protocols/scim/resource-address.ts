const plainId = /^[\w:-]+$/

/** `base` is the address of the gateway, `endpoint` a path below it. Most ids need no encoding, and a page has hundreds. */
export const addressAt = (base: string, endpoint: string, id: string): string =>
  `${base}${endpoint}/${plainId.test(id) ? id : encodeURIComponent(id)}`

export const resourceAddress = (base: string, type: 'User' | 'Group', id: string): string =>
  addressAt(base, type === 'User' ? '/Users' : '/Groups', id)
