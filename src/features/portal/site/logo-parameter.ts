import { resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import { text } from '#sdk/module/parameter-types.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { pictureUri, readPictureUri } from '#sdk/page/picture.ts'

/** The parameter for the logo beside the name of the portal. */
export const logoParameter = text({
  about:
    'The logo beside the name: a file below the configuration folder, or a data URI. A PNG, JPEG, WebP or SVG of at most 64 KB.',
})

/** The logo as a data URI; undefined if there is none, or if it is invalid, which is reported. */
export function readLogo(
  written: string | undefined,
  params: Params,
  issues: Issues,
  context: ParseContext,
): string | undefined {
  if (written === undefined || written === '') return undefined
  try {
    if (written.startsWith('data:')) return readPictureUri(written)
    if (context.readFile === undefined) throw new Error('must be a data URI, since there are no files here')
    return pictureUri(Buffer.from(context.readFile(resolve(context.folder, written), 'base64'), 'base64'))
  } catch (error) {
    issues.error(params.pathOf('logo'), `"logo": ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}
