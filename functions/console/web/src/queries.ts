/** The readings of the page. */
import {QueryClient, type InvalidateOptions, type InvalidateQueryFilters, type QueryKey} from '@tanstack/react-query';

export class Queries extends QueryClient {
  /**
   * A first reading that is under way may be from before the change. Its library goes on with it and takes its answer for a new one, so it is read once more
   * after it. It is not ended, since a workspace that changes all the time would never be shown.
   */
  override async invalidateQueries<Key extends QueryKey = QueryKey>(filters?: InvalidateQueryFilters<Key>, options?: InvalidateOptions): Promise<void> {
    const isFirst = this.getQueryCache().findAll({...filters, fetchStatus: 'fetching'}).filter(({state}) => state.data === undefined);
    await super.invalidateQueries(filters, options);
    await Promise.all(isFirst.map(({queryKey}) => super.invalidateQueries({queryKey, exact: true}, options)));
  }
}
