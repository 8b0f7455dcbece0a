import { ArrayList } from './collections.ts'
import { askGateway } from './host-bridge.ts'
import { javaText } from './java-value.ts'

/** com.tremolosecurity.proxy.filters.SetupGroupMetadataWatch: the mappings of GroupMetaData objects. */
export const SetupGroupMetadataWatch = {
  /** The groups of a group of another system; null if there are none. */
  getK8s(external: unknown): ArrayList | null {
    const groups = askGateway('groupsOfExternal', { name: javaText(external) }) as readonly string[]
    return groups.length === 0 ? null : new ArrayList(groups)
  },

  /** The group of another system; null if there is none. */
  getExt: (group: unknown): string | null => askGateway('externalOfGroup', { name: javaText(group) }) as string | null,
}
