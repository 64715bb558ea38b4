mod served_link;
