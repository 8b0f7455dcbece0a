import { HashMap } from './hash-map.ts'
import { Attribute, type AuthInfo } from './identity.ts'

/** com.tremolosecurity.proxy.auth.AddPortalRolesToUserData: its static members. */
export const AddPortalRolesToUserData = {
  SESSION_ATTR_NAME: 'portalGroups',
  NS_SESSION_NAME: 'trmeolo.io/nsessions',
}

/** com.tremolosecurity.myvd.dataObj.ClusterInfo: the roles of the user in a cluster. */
export class ClusterInfo {
  readonly #namespaces = new HashMap()

  /** Each has a map with the names of the roles; those of the whole cluster are under "N/A". */
  getNamespaces(): HashMap {
    return this.#namespaces
  }
}

interface Row {
  readonly Cluster: string
  readonly Namespace: string
  readonly Name: string
}

/** By the name that a cluster is shown with; null if the login did not find the roles of the user. */
export function clusterRoles(user: AuthInfo): HashMap | null {
  const attribute = user.getAttribs().get(AddPortalRolesToUserData.SESSION_ATTR_NAME)
  const rows = attribute instanceof Attribute ? readRows(attribute.getValues().toArray()[0]) : undefined
  if (rows === undefined) return null
  const clusters = new HashMap()
  for (const { Cluster, Namespace, Name } of rows) {
    const cluster = clusters.computeIfAbsent(Cluster, () => new ClusterInfo()) as ClusterInfo
    const roles = cluster.getNamespaces().computeIfAbsent(Namespace, () => new HashMap()) as HashMap
    roles.put(Name, 1)
  }
  return clusters
}

/** Undefined for an attribute of that name that is something else. */
function readRows(text: unknown): readonly Row[] | undefined {
  try {
    const rows: unknown = JSON.parse(String(text))
    return Array.isArray(rows) ? (rows as readonly Row[]) : undefined
  } catch {
    return undefined
  }
}
