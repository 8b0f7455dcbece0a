import { notifyManager, QueryClient } from '@tanstack/react-query'
import { ApiError } from '../api/call.ts'

const retries = 2

// A button that sends something is off before the browser tells of the next click, which may be waiting already.
notifyManager.setScheduler(queueMicrotask)

/** What was refused is refused again; only what may pass is tried again. */
const mayPass = (error: Error): boolean => !(error instanceof ApiError) || error.status >= 500

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      retry: (failures, error) => failures < retries && mayPass(error),
      retryDelay: (failures) => 500 * 2 ** failures,
    },
    // A change is made while there is a connection, or fails at once: nothing is done later behind somebody's back.
    mutations: { networkMode: 'always' },
  },
})
