/** The public address of a page, as messages link to it. Throws an Error for any other text. */
export function readPageUrl(written: string): string {
  const url = URL.canParse(written) ? new URL(written) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search + url.hash !== '') {
    throw new Error('must be an http or https address without login, query and fragment')
  }
  return url.href
}
